// Declares what every test program would otherwise compile anew: JSON values and their parsers.
// Part of the precompiled header.
#pragma once

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;

extern template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
extern template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<const char*>>;
extern template class nlohmann::detail::parser<nlohmann::json,
                                               nlohmann::detail::input_stream_adapter>;
