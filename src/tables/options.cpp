#include "lane/options.h"

namespace lane {

std::string_view to_text(Activations a) {
  switch (a) {
    case Activations::F32:
      return "f32";
    case Activations::Int8x2:
      return "int8x2";
    case Activations::Int8:
      return "int8";
  }
  return "";
}

std::string_view to_text(KvType k) {
  switch (k) {
    case KvType::F16:
      return "f16";
    case KvType::F32:
      return "f32";
    case KvType::Q8_0:
      return "q8_0";
  }
  return "";
}

}  // namespace lane
