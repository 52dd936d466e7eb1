// Binary format of a parsed chat template in a bundle; docs/chat-format.md specifies it. The
// converter writes it; runtime/chat checks and runs it.
//
//   ProgramHeader | ProgramNode[n_nodes] | u32 links[n_links] | ProgramString[n_strings] | text
//
// All numbers are little endian. A node refers to others by index, and only to earlier nodes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn::chat {

inline constexpr char kProgramMagic[4] = {'A', 'C', 'T', 'P'};
inline constexpr uint32_t kProgramVersion = 1;
inline constexpr uint32_t kNoIndex = 0xffffffffu;
// Maximum bytes of a program; real ones have some ten thousand.
inline constexpr uint64_t kMaxProgramBytes = uint64_t{1} << 24;

struct ProgramHeader {
  char magic[4];
  uint32_t version;
  uint32_t n_nodes;
  uint32_t n_links;
  uint32_t n_strings;
  uint32_t text_bytes;
  uint32_t root;  // a statement
  uint32_t zero;
};
static_assert(sizeof(ProgramHeader) == 32);

// Operations. The meaning of a, b and c depends on the operation. A "list" is the index of a link
// and the number of links from there. "args" is the index of a link: the count of positional
// arguments, the count of named ones, then a node each, then a (string, node) each.
enum class Op : uint8_t {
  // expressions
  kNone = 0,
  kTrue,
  kFalse,
  kInt,      // a, b: low and high half
  kBigInt,   // a: string of decimal digits
  kFloat,    // a, b: halves of the IEEE bits
  kString,   // a: string
  kName,     // a: string
  kList,     // a, b: list of nodes
  kTuple,    // a, b: list of nodes
  kDict,     // a, b: list of nodes, alternating key and value
  kGetAttr,  // a: node; b: string
  kGetItem,  // a: node; b: node
  kSlice,    // a: node; b: links of start, stop and step, each a node or kNoIndex
  kCall,     // a: node; c: args
  kFilter,   // a: node; b: filter; c: args
  kTest,     // a: node; b: test; c: args
  kNot,      // a: node; also the next two
  kNegative,
  kPositive,
  kAnd,  // a, b: nodes; also the next eight
  kOr,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,    // a, b: list of nodes
  kCompare,   // a: node; b: list of c pairs: Comparison, node
  kChoice,    // a: value if b is true (nodes), else c (node or kNoIndex)
  kCaptured,  // output of the enclosing block: the input of {% filter %} and of {% set %} filters
  // targets of assignments
  kTargetName,   // a: string
  kTargetField,  // a: string, of a namespace; b: string
  kTargetTuple,  // a, b: list of targets
  // statements
  kText,      // a: string
  kPrint,     // a: node
  kSequence,  // a, b: list of statements
  kIf,        // a, b: list: condition, statement, ...; c: else statement or kNoIndex
  kFor,  // a: links of target, node, statement, statement if empty, condition (the last two may be
         // kNoIndex)
  kSet,  // a: target; b: node
  kSetBlock,     // a: target; b: statement; c: node that contains kCaptured, or kNoIndex
  kMacro,        // a: string; b: links: number of parameters, (string, node or kNoIndex) each; c:
                 // statement
  kWith,         // a, b: list: target, node, ...; c: statement
  kFilterBlock,  // a: statement; b: node that contains kCaptured
  kScope,        // a: statement with its own variable scope ({% generation %})
  kBreak,
  kContinue,
};
inline constexpr uint8_t kOpCount = static_cast<uint8_t>(Op::kContinue) + 1;

enum class Comparison : uint32_t {
  kEqual = 0,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};
inline constexpr uint32_t kComparisonCount = static_cast<uint32_t>(Comparison::kNotIn) + 1;

struct ProgramNode {
  uint8_t op;
  uint8_t height;  // greater than that of the nodes it refers to, and at most kMaxHeight
  uint16_t zero;
  uint32_t line;  // line of the template, for messages
  uint32_t a, b, c;
};
static_assert(sizeof(ProgramNode) == 20);
inline constexpr uint8_t kMaxHeight = 200;

struct ProgramString {
  uint32_t offset;  // offset in the text
  uint32_t bytes;   // valid UTF-8
};

// Filters and tests; append-only. Several names may map to one.
enum class Filter : uint32_t {
  kAbs = 0,
  kAttr,
  kBatch,
  kCapitalize,
  kDefault,
  kDictSort,
  kEscape,
  kFirst,
  kFloat,
  kIndent,
  kInt,
  kItems,
  kJoin,
  kLast,
  kLength,
  kList,
  kLower,
  kMap,
  kMax,
  kMin,
  kReject,
  kRejectAttr,
  kReplace,
  kReverse,
  kRound,
  kSafe,
  kSelect,
  kSelectAttr,
  kSort,
  kString,
  kSum,
  kTitle,
  kToJson,
  kTrim,
  kUnique,
  kUpper,
};
inline constexpr uint32_t kFilterCount = static_cast<uint32_t>(Filter::kUpper) + 1;

enum class Test : uint32_t {
  kBoolean = 0,
  kCallable,
  kDefined,
  kDivisibleBy,
  kEqual,
  kEscaped,
  kEven,
  kFalse,
  kFloat,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kInteger,
  kIterable,
  kLess,
  kLessOrEqual,
  kLower,
  kMapping,
  kNone,
  kNotEqual,
  kNumber,
  kOdd,
  kSameAs,
  kSequence,
  kString,
  kTrue,
  kUndefined,
  kUpper,
};
inline constexpr uint32_t kTestCount = static_cast<uint32_t>(Test::kUpper) + 1;

struct FilterName {
  const char* name;
  Filter filter;
};
inline constexpr FilterName kFilterNames[] = {
    {"abs", Filter::kAbs},
    {"attr", Filter::kAttr},
    {"batch", Filter::kBatch},
    {"capitalize", Filter::kCapitalize},
    {"count", Filter::kLength},
    {"d", Filter::kDefault},
    {"default", Filter::kDefault},
    {"dictsort", Filter::kDictSort},
    {"e", Filter::kEscape},
    {"escape", Filter::kEscape},
    {"first", Filter::kFirst},
    {"float", Filter::kFloat},
    {"indent", Filter::kIndent},
    {"int", Filter::kInt},
    {"items", Filter::kItems},
    {"join", Filter::kJoin},
    {"last", Filter::kLast},
    {"length", Filter::kLength},
    {"list", Filter::kList},
    {"lower", Filter::kLower},
    {"map", Filter::kMap},
    {"max", Filter::kMax},
    {"min", Filter::kMin},
    {"reject", Filter::kReject},
    {"rejectattr", Filter::kRejectAttr},
    {"replace", Filter::kReplace},
    {"reverse", Filter::kReverse},
    {"round", Filter::kRound},
    {"safe", Filter::kSafe},
    {"select", Filter::kSelect},
    {"selectattr", Filter::kSelectAttr},
    {"sort", Filter::kSort},
    {"string", Filter::kString},
    {"sum", Filter::kSum},
    {"title", Filter::kTitle},
    {"tojson", Filter::kToJson},
    {"trim", Filter::kTrim},
    {"unique", Filter::kUnique},
    {"upper", Filter::kUpper},
};

struct TestName {
  const char* name;
  Test test;
};
inline constexpr TestName kTestNames[] = {
    {"!=", Test::kNotEqual},       {"<", Test::kLess},
    {"<=", Test::kLessOrEqual},    {"==", Test::kEqual},
    {">", Test::kGreater},         {">=", Test::kGreaterOrEqual},
    {"boolean", Test::kBoolean},   {"callable", Test::kCallable},
    {"defined", Test::kDefined},   {"divisibleby", Test::kDivisibleBy},
    {"eq", Test::kEqual},          {"equalto", Test::kEqual},
    {"escaped", Test::kEscaped},   {"even", Test::kEven},
    {"false", Test::kFalse},       {"float", Test::kFloat},
    {"ge", Test::kGreaterOrEqual}, {"greaterthan", Test::kGreater},
    {"gt", Test::kGreater},        {"in", Test::kIn},
    {"integer", Test::kInteger},   {"iterable", Test::kIterable},
    {"le", Test::kLessOrEqual},    {"lessthan", Test::kLess},
    {"lower", Test::kLower},       {"lt", Test::kLess},
    {"mapping", Test::kMapping},   {"ne", Test::kNotEqual},
    {"none", Test::kNone},         {"number", Test::kNumber},
    {"odd", Test::kOdd},           {"sameas", Test::kSameAs},
    {"sequence", Test::kSequence}, {"string", Test::kString},
    {"true", Test::kTrue},         {"undefined", Test::kUndefined},
    {"upper", Test::kUpper},
};

}  // namespace arn::chat
