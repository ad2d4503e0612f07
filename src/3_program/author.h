// The parts of author(), one a file. Each says the statements of one thing and returns the name of its result.
#pragma once
#include <string>
#include <string_view>

#include "builder.h"
#include "lane/spec.h"

namespace lane {

// basics.cpp
/// matrix x + bias. The product is named `base`, the sum `base`b.
std::string apply(Builder& builder, std::string_view base, const Linear& linear, const std::string& x);
/// x itself where there is no bias.
std::string biased(Builder& builder, std::string_view base, const Weight& bias, const std::string& x);
std::string apply(Builder& builder, std::string_view base, const Norm& norm, const std::string& x);
/// x itself where there is no norm.
std::string apply(Builder& builder, std::string_view base, const std::optional<Norm>& norm, const std::string& x);
/// x itself where the factor is 1.
std::string scaled(Builder& builder, std::string_view base, double factor, const std::string& x);
/// Values `from` to `through` (1-based) of each of `heads` heads of `width` values.
std::string slice(Builder& builder, std::string_view base, const std::string& x, int64_t heads, int64_t width,
                  int64_t from, int64_t through);
std::string rotated(Builder& builder, std::string_view base, const Rotary& rotary, const std::string& x);

// mixers.cpp
std::string say_mixer(Builder& builder, const Attention& of, const std::string& h, int64_t ctx);
std::string say_mixer(Builder& builder, const LatentAttention& of, const std::string& h, int64_t ctx);
std::string say_mixer(Builder& builder, const ShortConvolution& of, const std::string& h, int64_t ctx);
std::string say_mixer(Builder& builder, const DeltaRule& of, const std::string& h, int64_t ctx);

// feed_forward.cpp
std::string say_feed_forward(Builder& builder, const Dense& of, const std::string& f);
std::string say_feed_forward(Builder& builder, const Experts& of, const std::string& f);

// text.cpp
/// The uncut program's text.
std::string program_text(const ModelSpec& spec, const std::vector<ProgramStatement>& statements);

}  // namespace lane
