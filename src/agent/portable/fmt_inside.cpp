// The functions of fmt: Debian has them as a shared library alone, but the whole source is in the headers.
#include <fmt/format-inl.h>

namespace fmt::detail {
template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
}  // namespace fmt::detail
