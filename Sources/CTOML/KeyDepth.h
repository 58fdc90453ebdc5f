#pragma once

#include <optional>
#include <string_view>

#include "CTOML.h"

// Where a key with more than `limit` dotted parts stands, if there is one.
//
// toml++ limits the nesting of values, but not of keys: `a.a.a…` over half a megabyte makes a tree
// so deep that freeing it overflows the stack. This scan knows just enough of TOML's words
// (strings, comments, the signs that end a key) to agree with the parser up to the first syntax
// error, and beyond that the parser does not go.
std::optional<ctoml_position> too_deep_key(std::string_view text, unsigned limit);
