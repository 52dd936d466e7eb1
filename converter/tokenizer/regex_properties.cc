#include "converter/tokenizer/regex_properties.h"

#include <utility>

namespace arn::convert {
namespace {

constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"any", "Any"},
    {"l", "L"},
    {"lu", "Lu"},
    {"ll", "Ll"},
    {"lt", "Lt"},
    {"lm", "Lm"},
    {"lo", "Lo"},
    {"m", "M"},
    {"mn", "Mn"},
    {"mc", "Mc"},
    {"me", "Me"},
    {"n", "N"},
    {"nd", "Nd"},
    {"nl", "Nl"},
    {"no", "No"},
    {"p", "P"},
    {"pc", "Pc"},
    {"pd", "Pd"},
    {"ps", "Ps"},
    {"pe", "Pe"},
    {"pi", "Pi"},
    {"pf", "Pf"},
    {"po", "Po"},
    {"s", "S"},
    {"sm", "Sm"},
    {"sc", "Sc"},
    {"sk", "Sk"},
    {"so", "So"},
    {"z", "Z"},
    {"zs", "Zs"},
    {"zl", "Zl"},
    {"zp", "Zp"},
    {"c", "C"},
    {"cc", "Cc"},
    {"cf", "Cf"},
    {"cs", "Cs"},
    {"co", "Co"},
    {"cn", "Cn"},
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"alphabetic", "Alphabetic"},
    {"alpha", "Alphabetic"},
    {"lowercase", "Lowercase"},
    {"lower", "Lowercase"},
    {"uppercase", "Uppercase"},
    {"upper", "Uppercase"},
    {"whitespace", "White_Space"},
    {"space", "White_Space"},
    {"digit", "Nd"},
};

}  // namespace

std::string_view Pcre2Property(std::string_view name) {
  for (const auto& [known, pcre2] : kProperties) {
    if (known == name) return pcre2;
  }
  return {};
}

}  // namespace arn::convert
