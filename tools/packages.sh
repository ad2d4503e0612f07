#!/usr/bin/env bash
# The Debian packages that lanec needs, in one place. `tools/packages.sh build|test` installs the missing ones of a set with
# apt-get (as root, or through sudo); it does nothing where all are there.
set -euo pipefail

build=(g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libutf8proc-dev
       libboost-context-dev)
test=("${build[@]}" git ccache libgtest-dev libgmock-dev libpcre2-dev clang-format-14 python3)
fetch=("${build[@]}" python3-pip unzip ca-certificates)

declare -n wanted="${1:?usage: tools/packages.sh build|test|fetch}"
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
if [ "$(id -u)" = 0 ]; then root=(); elif command -v sudo >/dev/null; then root=(sudo); else
  echo "packages: missing ${missing[*]}, and neither root nor sudo to install them with" >&2
  exit 5
fi
echo "packages: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get -qq update >&2
"${root[@]}" apt-get -qq install -y --no-install-recommends "${missing[@]}" >&2
