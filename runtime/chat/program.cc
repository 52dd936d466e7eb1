#include "runtime/chat/program.h"

#include <cstdio>
#include <cstring>

#include "platform/base/result.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

// Role of a node; a node lists the roles that its children may have.
enum Role : uint8_t { kExpression = 1, kTarget = 2, kStatement = 4 };

Role RoleOf(Op op) {
  if (op <= Op::kCaptured) return kExpression;
  if (op <= Op::kTargetTuple) return kTarget;
  return kStatement;
}

}  // namespace

class Program::Checker {
 public:
  Checker(const Program& program, Diag* diag) : program_(program), diag_(diag) {}

  Status Run() {
    const ProgramHeader& header = *program_.header_;
    for (uint32_t i = 0; i < header.n_strings; ++i) {
      const ProgramString& s = program_.strings_[i];
      if (s.offset > header.text_bytes || s.bytes > header.text_bytes - s.offset ||
          !IsValidUtf8({program_.text_ + s.offset, s.bytes})) {
        return Fail("string %u is out of range or not UTF-8", i);
      }
    }
    for (index_ = 0; index_ < header.n_nodes; ++index_) {
      node_ = &program_.nodes_[index_];
      if (node_->op >= kOpCount || node_->height > kMaxHeight || node_->zero != 0) {
        return Fail("node %u has an unknown operation", index_);
      }
      ARN_TRY(CheckNode());
    }
    if (header.root >= header.n_nodes || RoleOf(program_.op(header.root)) != kStatement) {
      return Fail("the root %u is not a statement", header.root);
    }
    return Status::kOk;
  }

 private:
  Status Fail(const char* format, uint32_t index) {
    char text[128];
    std::snprintf(text, sizeof text, format, index);
    return diag_->Fail(Status::kBadBundle, "chat template: %s", text);
  }
  Status FailNode() { return Fail("node %u has an invalid reference", index_); }

  Status CheckChild(uint32_t child, Role role, bool may_lack = false) {
    if (may_lack && child == kNoIndex) return Status::kOk;
    if (child >= index_ || RoleOf(program_.op(child)) != role ||
        program_.node(child).height >= node_->height) {
      return FailNode();
    }
    return Status::kOk;
  }
  Status CheckString(uint32_t string) {
    return string < program_.header_->n_strings ? Status::kOk : FailNode();
  }
  Status CheckLinks(uint32_t first, uint64_t count) {
    const uint32_t n = program_.header_->n_links;
    return first <= n && count <= n - first ? Status::kOk : FailNode();
  }
  Status CheckList(uint32_t first, uint32_t count, Role role) {
    ARN_TRY(CheckLinks(first, count));
    for (uint32_t i = 0; i < count; ++i) ARN_TRY(CheckChild(program_.link(first + i), role));
    return Status::kOk;
  }
  Status CheckArguments(uint32_t first) {
    ARN_TRY(CheckLinks(first, 2));
    const uint64_t positional = program_.link(first);
    const uint64_t named = program_.link(first + 1);
    ARN_TRY(CheckLinks(first, 2 + positional + 2 * named));
    for (uint32_t i = 0; i < positional; ++i) {
      ARN_TRY(CheckChild(program_.link(first + 2 + i), kExpression));
    }
    const auto at = static_cast<uint32_t>(first + 2 + positional);
    for (uint32_t i = 0; i < named; ++i) {
      ARN_TRY(CheckString(program_.link(at + 2 * i)));
      ARN_TRY(CheckChild(program_.link(at + 2 * i + 1), kExpression));
    }
    return Status::kOk;
  }
  // Checks pairs: the first of each has `role`, the second `second`.
  Status CheckPairs(uint32_t first, uint32_t count, Role role, Role second) {
    if (count % 2 != 0) return FailNode();
    ARN_TRY(CheckLinks(first, count));
    for (uint32_t i = 0; i < count; i += 2) {
      ARN_TRY(CheckChild(program_.link(first + i), role));
      ARN_TRY(CheckChild(program_.link(first + i + 1), second));
    }
    return Status::kOk;
  }
  Status CheckComparisons() {
    ARN_TRY(CheckChild(node_->a, kExpression));
    ARN_TRY(CheckLinks(node_->b, uint64_t{node_->c} * 2));
    for (uint32_t i = 0; i < node_->c; ++i) {
      if (program_.link(node_->b + 2 * i) >= kComparisonCount) return FailNode();
      ARN_TRY(CheckChild(program_.link(node_->b + 2 * i + 1), kExpression));
    }
    return Status::kOk;
  }
  Status CheckFor() {
    ARN_TRY(CheckLinks(node_->a, 5));
    ARN_TRY(CheckChild(program_.link(node_->a), kTarget));
    ARN_TRY(CheckChild(program_.link(node_->a + 1), kExpression));
    ARN_TRY(CheckChild(program_.link(node_->a + 2), kStatement));
    ARN_TRY(CheckChild(program_.link(node_->a + 3), kStatement, /*may_lack=*/true));
    return CheckChild(program_.link(node_->a + 4), kExpression, /*may_lack=*/true);
  }
  Status CheckMacro() {
    ARN_TRY(CheckString(node_->a));
    ARN_TRY(CheckLinks(node_->b, 1));
    const uint32_t count = program_.link(node_->b);
    ARN_TRY(CheckLinks(node_->b, 1 + uint64_t{count} * 2));
    for (uint32_t i = 0; i < count; ++i) {
      ARN_TRY(CheckString(program_.link(node_->b + 1 + 2 * i)));
      ARN_TRY(CheckChild(program_.link(node_->b + 2 + 2 * i), kExpression, /*may_lack=*/true));
    }
    return CheckChild(node_->c, kStatement);
  }

  Status CheckNode() {
    const ProgramNode& n = *node_;
    switch (static_cast<Op>(n.op)) {
      case Op::kNone:
      case Op::kTrue:
      case Op::kFalse:
      case Op::kInt:
      case Op::kFloat:
      case Op::kCaptured:
      case Op::kBreak:
      case Op::kContinue: return Status::kOk;
      case Op::kBigInt:
      case Op::kString:
      case Op::kName:
      case Op::kText:
      case Op::kTargetName: return CheckString(n.a);
      case Op::kTargetField: ARN_TRY(CheckString(n.a)); return CheckString(n.b);
      case Op::kList:
      case Op::kTuple:
      case Op::kConcat: return CheckList(n.a, n.b, kExpression);
      case Op::kDict: return CheckPairs(n.a, n.b, kExpression, kExpression);
      case Op::kTargetTuple: return CheckList(n.a, n.b, kTarget);
      case Op::kSequence: return CheckList(n.a, n.b, kStatement);
      case Op::kGetAttr: ARN_TRY(CheckString(n.b)); return CheckChild(n.a, kExpression);
      case Op::kSlice:
        ARN_TRY(CheckChild(n.a, kExpression));
        ARN_TRY(CheckLinks(n.b, 3));
        for (uint32_t i = 0; i < 3; ++i) {
          ARN_TRY(CheckChild(program_.link(n.b + i), kExpression, /*may_lack=*/true));
        }
        return Status::kOk;
      case Op::kFilter:
        if (n.b >= kFilterCount) return FailNode();
        ARN_TRY(CheckChild(n.a, kExpression));
        return CheckArguments(n.c);
      case Op::kTest:
        if (n.b >= kTestCount) return FailNode();
        ARN_TRY(CheckChild(n.a, kExpression));
        return CheckArguments(n.c);
      case Op::kCall: ARN_TRY(CheckChild(n.a, kExpression)); return CheckArguments(n.c);
      case Op::kNot:
      case Op::kNegative:
      case Op::kPositive:
      case Op::kPrint: return CheckChild(n.a, kExpression);
      case Op::kGetItem:
      case Op::kAnd:
      case Op::kOr:
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide:
      case Op::kFloorDivide:
      case Op::kModulo:
      case Op::kPower: ARN_TRY(CheckChild(n.a, kExpression)); return CheckChild(n.b, kExpression);
      case Op::kCompare: return CheckComparisons();
      case Op::kChoice:
        ARN_TRY(CheckChild(n.a, kExpression));
        ARN_TRY(CheckChild(n.b, kExpression));
        return CheckChild(n.c, kExpression, /*may_lack=*/true);
      case Op::kIf:
        ARN_TRY(CheckPairs(n.a, n.b, kExpression, kStatement));
        return CheckChild(n.c, kStatement, /*may_lack=*/true);
      case Op::kFor: return CheckFor();
      case Op::kSet: ARN_TRY(CheckChild(n.a, kTarget)); return CheckChild(n.b, kExpression);
      case Op::kSetBlock:
        ARN_TRY(CheckChild(n.a, kTarget));
        ARN_TRY(CheckChild(n.b, kStatement));
        return CheckChild(n.c, kExpression, /*may_lack=*/true);
      case Op::kMacro: return CheckMacro();
      case Op::kWith:
        ARN_TRY(CheckPairs(n.a, n.b, kTarget, kExpression));
        return CheckChild(n.c, kStatement);
      case Op::kFilterBlock:
        ARN_TRY(CheckChild(n.a, kStatement));
        return CheckChild(n.b, kExpression);
      case Op::kScope: return CheckChild(n.a, kStatement);
    }
    return FailNode();
  }

  const Program& program_;
  Diag* const diag_;
  uint32_t index_ = 0;
  const ProgramNode* node_ = nullptr;
};

Status Program::Open(Span<const std::byte> bytes, Diag* diag) {
  const auto fail = [&](const char* why) {
    return diag->Fail(Status::kBadBundle, "chat template: %s", why);
  };
  if (bytes.size() < sizeof(ProgramHeader) || bytes.size() > kMaxProgramBytes) {
    return fail("its size is invalid");
  }
  header_ = reinterpret_cast<const ProgramHeader*>(bytes.data());
  if (std::memcmp(header_->magic, kProgramMagic, sizeof kProgramMagic) != 0) {
    return fail("it does not begin with ACTP");
  }
  if (header_->version != kProgramVersion) {
    return diag->Fail(Status::kBundleVersion, "chat template: version %u, this library reads %u",
                      header_->version, kProgramVersion);
  }
  const uint64_t size = sizeof(ProgramHeader) + uint64_t{header_->n_nodes} * sizeof(ProgramNode) +
                        uint64_t{header_->n_links} * sizeof(uint32_t) +
                        uint64_t{header_->n_strings} * sizeof(ProgramString) + header_->text_bytes;
  if (size != bytes.size()) return fail("its counts do not add up to its size");
  nodes_ = reinterpret_cast<const ProgramNode*>(header_ + 1);
  links_ = reinterpret_cast<const uint32_t*>(nodes_ + header_->n_nodes);
  strings_ = reinterpret_cast<const ProgramString*>(links_ + header_->n_links);
  text_ = reinterpret_cast<const char*>(strings_ + header_->n_strings);
  return Checker(*this, diag).Run();
}

}  // namespace arn::chat
