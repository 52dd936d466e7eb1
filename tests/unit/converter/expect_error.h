// What the tests of the converter share.
#pragma once

#include <filesystem>
#include <string>

#include "converter/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace arn::test {

// The message of the ConvertError that `action` throws; fails the test when it throws none.
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
