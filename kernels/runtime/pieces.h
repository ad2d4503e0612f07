// A file's pieces, read and digested by several threads ahead of whoever takes them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <future>

#include "runtime/file.h"
#include "runtime/xxh3.h"

namespace LANE_NAMESPACE {

struct Piece {
  uint64_t at = 0, bytes = 0;  // in the file
  uint8_t* data = nullptr;
  uint64_t digest = 0;
  Status status;
};

/// Fills piece.data and piece.digest. Each part is digested while it is in the processor's cache.
inline Piece read_piece(const File& file, Piece piece) {
  constexpr uint64_t kPart = 256 << 10;
  RunningDigest running;
  uint64_t at = 0, left = piece.bytes;
  for (; left >= 2 * kPart && piece.status.ok(); at += kPart, left -= kPart) {
    piece.status = file.read(piece.at + at, piece.data + at, kPart);
    running.add(piece.data + at, kPart);
  }
  if (piece.status.ok()) piece.status = file.read(piece.at + at, piece.data + at, left);
  piece.digest = at == 0 ? digest(piece.data, left) : running.finish(piece.data + at, left);
  return piece;
}

class PieceReader {
 public:
  /// Bytes [begin, end) of `file`, in pieces of `piece_bytes`, the last one shorter.
  PieceReader(const File& file, uint64_t begin, uint64_t end, uint64_t piece_bytes)
      : file_(file), next_(begin), end_(end), piece_bytes_(piece_bytes) {}

  bool all_started() const { return next_ == end_; }
  size_t in_flight() const { return reading_.size(); }

  /// Starts to read the next piece into `to`.
  void start(uint8_t* to) {
    Piece piece;
    piece.at = next_;
    piece.bytes = std::min(piece_bytes_, end_ - next_);
    piece.data = to;
    next_ += piece.bytes;
    // Deferred where no thread can be had: then take() reads it.
    reading_.push_back(
        std::async(std::launch::async | std::launch::deferred, [this, piece] { return read_piece(file_, piece); }));
  }
  /// The earliest piece that was started and not taken, once it is read.
  Piece take() {
    Piece piece = reading_.front().get();
    reading_.pop_front();
    return piece;
  }

 private:
  const File& file_;
  uint64_t next_, end_, piece_bytes_;
  std::deque<std::future<Piece>> reading_;
};

}  // namespace LANE_NAMESPACE
