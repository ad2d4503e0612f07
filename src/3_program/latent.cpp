// Attention on a latent. docs/logos.md, "head product".
#include "author.h"

namespace lane {
namespace {

using K = OptionKey;

struct Queries {
  std::string plain, turned;
};

Queries say_queries(Builder& builder, const LatentAttention& of, const std::string& h) {
  std::string low = h;
  if (of.query_down) low = apply(builder, "qan", of.query_norm, apply(builder, "qa", of.query_down, h));
  const std::string q = apply(builder, "q", of.query, low);
  const int64_t width = of.plain + of.turned;
  const std::string turned = slice(builder, "qt", q, of.heads, width, of.plain + 1, width);
  return {slice(builder, "qp", q, of.heads, width, 1, of.plain), rotated(builder, "qr", of.rotary, turned)};
}

struct Latent {
  std::string content, turned;
};

Latent say_latent(Builder& builder, const LatentAttention& of, const std::string& h) {
  const std::string both = apply(builder, "kv", of.latent, h);
  const int64_t width = of.rank + of.turned;
  const std::string content = slice(builder, "c", both, 1, width, 1, of.rank);
  const std::string turned = slice(builder, "kt", both, 1, width, of.rank + 1, width);
  return {apply(builder, "cn", of.latent_norm, content), rotated(builder, "kr", of.rotary, turned)};
}

std::string say_attention(Builder& builder, const LatentAttention& of, const std::string& q, const std::string& k,
                          const std::string& v, int64_t groups, int64_t width, int64_t value_width, int64_t ctx) {
  const std::string keys = builder.carried("keys", 1, ctx, groups * width);
  const std::string values = builder.carried("vals", 1, ctx, groups * value_width);
  builder.write(keys, k);
  builder.write(values, v);
  return builder.each("a", OpKind::Attention, {q, keys, values, "pos"},
                      {{K::Heads, double(of.heads)},
                       {K::Groups, double(groups)},
                       {K::Width, double(width)},
                       {K::ValueWidth, double(value_width)},
                       {K::Scale, of.scale}});
}

// Keys and values are the latent, the same for all heads; what would make a head's own of it stands before and after.
std::string say_absorbed(Builder& builder, const LatentAttention& of, const Queries& q, const Latent& latent,
                         int64_t ctx) {
  const OptionList heads{{K::Heads, double(of.heads)}};
  const std::string lifted =
      builder.let("ql", OpKind::HeadProduct, {builder.constant(of.key_up.matrix), q.plain}, heads);
  const std::string query = builder.let("qj", OpKind::HeadJoin, {lifted, q.turned}, heads);
  const std::string key = builder.let("kj", OpKind::Join, {latent.content, latent.turned});
  const std::string a = say_attention(builder, of, query, key, latent.content, 1, of.rank + of.turned, of.rank, ctx);
  return builder.let("av", OpKind::HeadProduct, {builder.constant(of.value_up.matrix), a}, heads);
}

std::string say_unabsorbed(Builder& builder, const LatentAttention& of, const Queries& q, const Latent& latent,
                           int64_t ctx) {
  const OptionList heads{{K::Heads, double(of.heads)}};
  const std::string both = apply(builder, "kvu", of.key_value_up, latent.content);
  const int64_t width = of.plain + of.value_width;
  const std::string plain = slice(builder, "kp", both, of.heads, width, 1, of.plain);
  const std::string value = slice(builder, "v", both, of.heads, width, of.plain + 1, width);
  const std::string query = builder.let("qj", OpKind::HeadJoin, {q.plain, q.turned}, heads);
  OptionList shared = heads;  // one rotated key for all heads
  shared.push_back({K::Width, double(of.turned)});
  const std::string key = builder.let("kj", OpKind::HeadJoin, {plain, latent.turned}, shared);
  return say_attention(builder, of, query, key, value, of.heads, of.plain + of.turned, of.value_width, ctx);
}

}  // namespace

std::string say_mixer(Builder& builder, const LatentAttention& of, const std::string& h, int64_t ctx) {
  const Queries q = say_queries(builder, of, h);
  const Latent latent = say_latent(builder, of, h);
  const std::string a =
      of.key_up ? say_absorbed(builder, of, q, latent, ctx) : say_unabsorbed(builder, of, q, latent, ctx);
  return apply(builder, "o", of.output, a);
}

}  // namespace lane
