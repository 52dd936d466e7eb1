// Shared by the converter tests.
#pragma once

#include <filesystem>
#include <string>

#include "converter/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace arn::test {

// Returns the message of the ConvertError thrown by `action`; fails the test if it throws none.
template <typename Action>
std::string ErrorOf(Action action) {
  try {
    action();
  } catch (const convert::ConvertError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace arn::test
