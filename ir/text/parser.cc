#include "ir/text/parser.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/builder.h"
#include "ir/prim.h"
#include "ir/text/attribute_names.h"
#include "ir/text/element_text.h"
#include "ir/text/printer.h"
#include "ir/text/text_cursor.h"
#include "ir/text/text_scope.h"

namespace weft {
namespace {

constexpr int kMaxLiteralRank = 64;
class Parser : TextCursor {
 public:
  Parser(const std::string& text, const ParseOptions& options) : TextCursor(text, options.file), options_(options) {}

  Attr Attribute() {
    Attr value = AttributeValue();
    SkipLines();
    if (!AtEnd()) Fail(pos_, "expected the end of the attribute");
    return value;
  }

  std::vector<FnRef> Module() {
    SkipLines();
    if (PeekWord() == "weft") Version();
    std::vector<FnRef> list;
    for (SkipLines(); list.empty() || !AtEnd(); SkipLines()) {
      const size_t at = pos_;
      if (PeekWord() != "fn")
        Fail(at,
             list.empty() ? "expected a function, 'fn name(...) -> (...) {'" : "expected 'fn' or the end of the text");
      Word("'fn'");
      SkipSpace();
      const size_t name_at = pos_;
      const std::string name = Word("the name of the function");
      if (IsTextKeyword(name)) Fail(name_at, "'" + name + "' is a word of the grammar, not a name");
      if (functions_.count(name)) Fail(name_at, "function '" + name + "' is defined twice");
      FnRef fn = Function(name, 1);
      functions_.emplace(name, fn);
      list.push_back(std::move(fn));
    }
    return list;
  }

 private:
  void Version() {
    Word("'weft'");
    SkipSpace();
    const size_t at = pos_;
    const std::string number = NumberToken();
    if (number != std::to_string(kTextVersion)) {
      Fail(at, "this text is of version '" + number + "'; only version " + std::to_string(kTextVersion) + " is known");
    }
    EndOfStatement();
  }

  // --- Types ---

  std::optional<DType> TryDType() {
    const std::string word = PeekWord();
    const std::optional<DType> dtype = ParseDType(word);
    if (dtype) pos_ += word.size();
    return dtype;
  }

  Dims DimList(char close) {
    Dims dims;
    if (AcceptInside(close)) return dims;
    do {
      SkipLines();
      const size_t at = pos_;
      while (IsWordPart(Peek()) || Peek() == '*' || Peek() == '+' || Peek() == '-') ++pos_;
      if (pos_ - at > kMaxWord) Fail(at, "this size is too long");
      std::optional<Dim> dim;
      Guarded(at, [&] { dim = Dim::Parse(text_.substr(at, pos_ - at)); });
      if (!dim) {
        if (pos_ == at) Expected("a size, such as 8 or n or 2*n+1");
        Fail(at, "'" + text_.substr(at, pos_ - at) + "' is not a size; expected one such as 8 or n or 2*n+1");
      }
      if (dim->is_static() && dim->value() < 0) Fail(at, "a size cannot be negative");
      dims.push_back(*dim);
    } while (AcceptInside(','));
    ExpectInside(close, " or ',' after a size");
    return dims;
  }

  Type ParseType() {
    SkipSpace();
    const std::optional<DType> dtype = TryDType();
    if (!dtype) Expected("a type such as f32[8,n]");
    if (Peek() != '[')
      Expected(std::string("'[' after ") + weft::Name(*dtype) + ", as in " + weft::Name(*dtype) + "[8,n]");
    ++pos_;
    Type type{*dtype, DimList(']'), {}};
    if (Peek() == '{') {  // the mesh axes over which it varies; a body stands after a space
      ++pos_;
      do {
        const size_t at = pos_;
        type.varying.push_back(Word("the name of a mesh axis"));
        if (type.varying.size() > 1 && !(type.varying[type.varying.size() - 2] < type.varying.back())) {
          Fail(at, "mesh axes stand in order, each once");
        }
      } while (Accept(','));
      Expect('}', " after mesh axes");
    }
    return type;
  }

  Types TypeList() {  // behind '('
    Types types;
    if (AcceptInside(')')) return types;
    do {
      SkipLines();
      types.push_back(ParseType());
    } while (AcceptInside(','));
    ExpectInside(')', " or ',' after a type");
    return types;
  }

  // --- Literals ---

  struct Element {
    size_t at;
    std::string text;
  };
  // A nested list of elements, row by row. `sizes[d]` is the length of the first list at depth d: all must agree.
  void ElementList(int depth, std::vector<int64_t>& sizes, std::vector<Element>& elements) {
    const size_t at = pos_;
    if (depth >= kMaxLiteralRank) Fail(at, "lists nested too deeply");
    ++pos_;  // [
    int64_t count = 0;
    if (!AcceptInside(']')) {
      do {
        SkipLines();
        if (Peek() == '[') {
          if (depth_of_elements_ != 0 && depth_of_elements_ <= depth + 1) Expected("a number");
          ElementList(depth + 1, sizes, elements);
        } else {
          if (depth_of_elements_ == 0) depth_of_elements_ = depth + 1;
          if (depth_of_elements_ != depth + 1) Expected("'['");
          if (static_cast<int64_t>(elements.size()) >= kMaxLiteralElements) {
            Fail(pos_, "a literal has at most " + std::to_string(kMaxLiteralElements) +
                           " elements; make a larger array a parameter, 'const name: type'");
          }
          const size_t element_at = pos_;
          elements.push_back({element_at, ElementToken()});
        }
        ++count;
      } while (AcceptInside(','));
      ExpectInside(']', " or ',' after an element");
    }
    if (static_cast<int>(sizes.size()) <= depth) sizes.resize(depth + 1, -1);
    if (sizes[depth] < 0) sizes[depth] = count;
    if (sizes[depth] != count) {
      Fail(at,
           "this list has " + std::to_string(count) + " entries, the one before it " + std::to_string(sizes[depth]));
    }
  }

  Atom Literal() {
    const size_t at = pos_;
    std::vector<int64_t> sizes;
    std::vector<Element> elements;
    const bool list = Peek() == '[';
    if (list) {
      depth_of_elements_ = 0;
      ElementList(0, sizes, elements);
    } else {
      elements.push_back({at, ElementToken()});
    }
    if (!Accept(':'))
      Expected(std::string("':' and the type of the literal, such as ") + (list ? "[1,2]:i32[2]" : "2.0:f32"));
    SkipSpace();
    const size_t type_at = pos_;
    Type type;
    if (list) {
      type = ParseType();
      if (!type.is_static() || !type.varying.empty()) Fail(type_at, "the type of a literal has plain numbers as sizes");
    } else {
      const std::optional<DType> dtype = TryDType();
      if (!dtype) Expected("an element type such as f32");
      type.dtype = *dtype;
      if (Peek() == '[')
        Fail(type_at, "a number has an element type alone, such as 2.0:f32; an array is written [2.0,3.0]:f32[2]");
    }
    Shape shape;
    for (const Dim& d : type.dims) shape.push_back(d.value());
    int64_t size = 0;
    Guarded(type_at, [&] { size = NumElements(shape); });
    // One flat list in row-major order may stand for any shape.
    if (size != static_cast<int64_t>(elements.size())) {
      Fail(type_at, "the type " + type.ToString() + " has " + std::to_string(size) + " elements, the list " +
                        std::to_string(elements.size()));
    }
    if (sizes.size() > 1 && size > 0 && sizes != shape)
      Fail(type_at, "the lists are not nested as " + type.ToString() + " is");
    std::optional<Tensor> tensor;
    Guarded(type_at, [&] { tensor = Tensor::Zeros(type.dtype, shape); });
    for (size_t i = 0; i < elements.size(); ++i) {
      Guarded(elements[i].at, [&] { SetElementFromText(*tensor, static_cast<int64_t>(i), elements[i].text); });
    }
    return Atom(std::move(*tensor));
  }

  // --- Attributes ---

  // Behind "mesh(".
  Mesh MeshAttribute() {
    Mesh mesh;
    if (AcceptInside(')')) return mesh;
    do {
      SkipLines();
      const std::string axis = Word("the name of a mesh axis");
      Expect('=', " and the size after the name of a mesh axis, as in mesh(x=2)");
      const size_t at = pos_;
      mesh.axes.push_back({axis, Int(NumberToken(), at)});
    } while (AcceptInside(','));
    ExpectInside(')', " or ',' after an axis of the mesh");
    return mesh;
  }

  Strings AxisNames() {  // x.y
    Strings axes;
    do axes.push_back(Word("the name of a mesh axis"));
    while (Accept('.'));
    return axes;
  }

  // Behind "shardings(": (x,-,y.z), ()+x, ...
  Shardings ShardingList() {
    Shardings list;
    if (AcceptInside(')')) return list;
    do {
      SkipLines();
      Expect('(', " before a sharding, as in (x,-)");
      Sharding sharding;
      if (!AcceptInside(')')) {
        do {
          SkipLines();
          sharding.dims.push_back(Accept('-') ? Strings() : AxisNames());
        } while (AcceptInside(','));
        ExpectInside(')', " or ',' after the axes of a dimension");
      }
      if (Accept('+')) sharding.partial = AxisNames();
      list.push_back(std::move(sharding));
    } while (AcceptInside(','));
    ExpectInside(')', " or ',' after a sharding");
    return list;
  }

  // true, 3, 2.5, "text", f32, [1,2], <8,n>, types(f32[3], i32[]), ["a","b"], mesh(x=2,y=4), shardings((x,-),());
  // [""...] is an empty list of strings.
  Attr AttributeValue() {
    SkipLines();
    const size_t at = pos_;
    if (Peek() == '"') return String();
    if (Peek() == '<') {
      ++pos_;
      return DimList('>');
    }
    if (Peek() == '[') return ListAttribute();
    const std::string word = PeekWord();
    if (word == "true" || word == "false") {
      pos_ += word.size();
      return word == "true";
    }
    if (word == "types") {
      pos_ += word.size();
      Expect('(', " after 'types'");
      return TypeList();
    }
    if (word == "mesh" || word == "shardings") {
      pos_ += word.size();
      Expect('(', " after '" + word + "'");
      if (word == "mesh") return MeshAttribute();
      return ShardingList();
    }
    if (!word.empty() && word != "nan" && word != "inf") {
      const std::optional<DType> dtype = TryDType();
      if (!dtype)
        Fail(at, "'" + word +
                     "' is no value of an attribute; expected one such as true, 3, 2.5, \"text\", f32, [1,2] or <8,n>");
      return *dtype;
    }
    if (!IsDigit(Peek()) && Peek() != '-' && word.empty()) Expected("the value of the attribute");
    const std::string token = NumberToken();
    if (token.find_first_of(".enEN") == std::string::npos) return Int(token, at);
    Tensor number = Tensor::Zeros(DType::kF64, {});
    Guarded(at, [&] { SetElementFromText(number, 0, token); });
    return number.at<double>(0);
  }

  Attr ListAttribute() {
    ++pos_;  // [
    if (AcceptInside(']')) return Ints();
    if (Peek() != '"') {
      Ints list;
      do {
        SkipLines();
        const size_t at = pos_;
        list.push_back(Int(NumberToken(), at));
      } while (AcceptInside(','));
      ExpectInside(']', " or ',' in a list of integers");
      return list;
    }
    Strings list;
    do {
      SkipLines();
      if (Peek() != '"') Expected("a string");
      const size_t at = pos_;
      list.push_back(String());
      if (text_.compare(pos_, 3, "...") == 0) {
        if (list.size() != 1 || !list[0].empty()) Fail(at, "'...' follows \"\" in an empty list of strings only");
        pos_ += 3;
        list.clear();
        break;
      }
    } while (AcceptInside(','));
    ExpectInside(']', " or ',' in a list of strings");
    return list;
  }

  Attrs AttributeList() {
    Attrs attrs;
    if (Peek() != '[') return attrs;
    ++pos_;
    if (AcceptInside(']')) return attrs;
    do {
      SkipLines();
      const size_t at = pos_;
      const std::string name = Word("the name of an attribute");
      if (attrs.Find(name.c_str()) != nullptr) Fail(at, "attribute '" + name + "' is given twice");
      ExpectInside('=', " after the name of an attribute");
      attrs.Set(name, AttributeValue());
    } while (AcceptInside(','));
    ExpectInside(']', " or ',' after an attribute");
    return attrs;
  }

  // --- Functions ---

  // From the parameter list to the closing brace. `depth` counts the functions around this one, itself included.
  FnRef Function(const std::string& name, int depth) {
    if (depth > kMaxRegionDepth) Fail(pos_, "regions nested more than " + std::to_string(kMaxRegionDepth) + " deep");
    TextScope scope(name);
    depth_below_.push_back(0);
    Expect('(', " and the parameters");
    if (!AcceptInside(')')) {
      do {
        SkipLines();
        Parameter(scope);
      } while (AcceptInside(','));
      ExpectInside(')', " or ',' after a parameter");
    }
    std::optional<Types> declared;
    SkipSpace();
    size_t declared_at = pos_;
    if (text_.compare(pos_, 2, "->") == 0) {
      pos_ += 2;
      SkipSpace();
      declared_at = pos_;
      declared = Accept('(') ? TypeList() : Types{ParseType()};
    }
    Expect('{', " and the body of the function");
    const Atoms results = Body(scope, depth);
    if (declared) CheckResults(scope, results, *declared, declared_at);
    FnRef fn = scope.builder.Build(results, /*keep_dead=*/true);
    const int below = depth_below_.back();
    depth_below_.pop_back();
    RememberDepth(*fn, below + 1);
    return fn;
  }

  void Parameter(TextScope& scope) {
    SkipSpace();
    size_t at = pos_;
    std::string name = Word("a parameter, 'name: type'");
    Param::Kind kind = Param::Kind::kArgument;
    if (name == "const") {
      kind = Param::Kind::kConstant;
      SkipSpace();
      at = pos_;
      name = Word("the name of the constant");
    }
    ExpectInside(':', " and a type after the parameter's name");
    const Type type = ParseType();
    const Atom v = scope.builder.Parameter(type, name, kind);
    Define(scope, name, v, at);
  }

  void Define(TextScope& scope, const std::string& name, const Atom& value, size_t at) {
    if (IsTextKeyword(name)) Fail(at, "'" + name + "' is a word of the grammar, not a name");
    scope.variables.push_back({std::string_view(text_).substr(at, name.size()), value});
    if (!scope.numbers.insert(static_cast<uint32_t>(scope.variables.size() - 1)).second)
      Fail(at, "'" + name + "' is defined twice");
  }

  void EndOfStatement() {
    SkipSpace();
    if (AtEnd() || Peek() == '}') return;
    if (Peek() != '\n' && Peek() != ';') Expected("the end of the line or ';'");
    ++pos_;
  }

  Atoms Body(TextScope& scope, int depth) {
    while (true) {
      do SkipLines();
      while (Accept(';'));
      if (AtEnd() || Peek() == '}') Expected("an equation or 'return'");
      const std::string word = PeekWord();
      if (word == "return") break;
      Equation(scope, depth);
      EndOfStatement();
    }
    Word("'return'");
    Atoms results;
    SkipSpace();
    while (!AtEnd() && Peek() != '\n' && Peek() != ';' && Peek() != '}') {
      results.push_back(Operand(scope));
      if (!Accept(',')) break;
      SkipLines();
      if (Peek() == '}') Expected("a result after ','");
    }
    EndOfStatement();
    do SkipLines();
    while (Accept(';'));
    if (Peek() != '}') Expected("'}' after the results");
    ++pos_;
    return results;
  }

  void CheckResults(const TextScope& scope, const Atoms& results, const Types& declared, size_t at) const {
    if (results.size() != declared.size()) {
      Fail(at, "the function returns " + std::to_string(results.size()) + " results, but " +
                   std::to_string(declared.size()) + " are declared");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = scope.builder.TypeOf(results[i]);
      if (!(type == declared[i])) {
        Fail(at,
             "result " + std::to_string(i) + " is " + type.ToString() + ", but declared as " + declared[i].ToString());
      }
    }
  }

  Atom Operand(TextScope& scope) {
    SkipSpace();
    const size_t at = pos_;
    const std::string word = PeekWord();
    if (!word.empty() && !IsTextKeyword(word)) {
      pos_ += word.size();
      const auto it = scope.numbers.find(std::string_view(word));
      if (it == scope.numbers.end()) Fail(at, "'" + word + "' is not defined");
      return scope.variables[*it].value;
    }
    const bool number = word == "true" || word == "false" || word == "nan" || word == "inf";
    if (!number && !IsDigit(Peek()) && Peek() != '-' && Peek() != '.' && Peek() != '[' && Peek() != '(') {
      Expected("a variable or a literal");
    }
    return Literal();
  }

  // Whether the '(' here opens the parameters of a region rather than a complex number.
  bool AtRegion() {
    const size_t saved = pos_;
    ++pos_;
    SkipLines();
    const std::string word = PeekWord();
    const bool region = Peek() == ')' || (!word.empty() && word != "nan" && word != "inf");
    pos_ = saved;
    return region;
  }

  FnRef NamedRegion() {
    const size_t at = pos_++;
    const std::string name = PeekWord();
    if (name.empty()) Expected("the name of a function after '@'");
    pos_ += name.size();
    auto it = functions_.find(name);
    if (it == functions_.end()) Fail(at, "there is no function '" + name + "' before this line");
    return it->second;
  }

  struct WrittenResult {
    size_t at;
    std::string name;
    std::optional<Type> type;
  };

  void Equation(TextScope& scope, int depth) {
    SkipSpace();
    const size_t begin = pos_;
    std::vector<WrittenResult> written;
    // `name:` or `name =` or `name,` start a list of results; anything else is the primitive.
    size_t ahead = pos_ + PeekWord().size();
    while (ahead < text_.size() && (text_[ahead] == ' ' || text_[ahead] == '\t')) ++ahead;
    const char after = ahead < text_.size() ? text_[ahead] : '\0';
    if (after == ':' || after == '=' || after == ',') {
      do {
        SkipLines();
        WrittenResult result{pos_, "", std::nullopt};
        result.name = Word("the name of a result");
        if (Accept(':')) result.type = ParseType();
        written.push_back(std::move(result));
      } while (Accept(','));
      Expect('=', " after the results");
    }
    SkipSpace();
    const size_t prim_at = pos_;
    const std::string prim_name = Word("an equation, 'name: type = primitive operand ...'");
    const int line = options_.file.empty() ? 0 : LineAt(prim_at);
    const Prim* prim = TryFindPrim(prim_name);
    if (prim == nullptr) Fail(prim_at, "there is no primitive '" + prim_name + "'");
    const size_t attrs_at = pos_;
    const Attrs attrs = AttributeList();
    if (!options_.any_attributes) Guarded(attrs_at, [&] { CheckAttributeNames(*prim, attrs); });
    Atoms operands;
    std::vector<FnRef> regions;
    for (SkipSpace(); !AtEnd() && Peek() != '\n' && Peek() != ';' && Peek() != '}'; SkipSpace()) {
      if (Peek() == '@') {
        const size_t at = pos_;
        regions.push_back(NamedRegion());
        if (depth + DepthOf(*regions.back()) > kMaxRegionDepth)
          Fail(at, "functions nested more than " + std::to_string(kMaxRegionDepth) + " deep");
      } else if (Peek() == '(' && AtRegion()) {
        regions.push_back(Function("region", depth + 1));
      } else {
        operands.push_back(Operand(scope));
      }
    }
    for (const FnRef& region : regions) depth_below_.back() = std::max(depth_below_.back(), DepthOf(*region));
    if (line > 0) scope.builder.set_loc(Loc::File(options_.file, line, scope.builder.name()));
    Atoms results;
    Guarded(prim_at, [&] { results = scope.builder.Emit(*prim, std::move(operands), attrs, std::move(regions)); });
    BindResults(scope, *prim, written, results, begin);
  }

  void BindResults(TextScope& scope, const Prim& prim, const std::vector<WrittenResult>& written, const Atoms& results,
                   size_t at) {
    if (written.size() != results.size()) {
      Fail(at, prim.name + " has " + std::to_string(results.size()) + " results here, but " +
                   std::to_string(written.size()) + " are named");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = scope.builder.TypeOf(results[i]);
      if (written[i].type && !(*written[i].type == type)) {
        Fail(written[i].at,
             "'" + written[i].name + "' is written as " + written[i].type->ToString() + ", but is " + type.ToString());
      }
      Define(scope, written[i].name, results[i], written[i].at);
    }
  }

  int DepthOf(const Fn& fn) const {
    auto it = depth_of_.find(&fn);
    return it == depth_of_.end() ? 1 : it->second;
  }
  void RememberDepth(const Fn& fn, int depth) { depth_of_[&fn] = depth; }

  const ParseOptions& options_;
  std::unordered_map<std::string, FnRef> functions_;
  std::unordered_map<const Fn*, int> depth_of_;  // of nested regions, 1 = none
  std::vector<int> depth_below_;                 // per open function: the deepest region so far
  int depth_of_elements_ = 0;                    // of the list literal being read
};

}  // namespace

std::vector<FnRef> ParseModule(const std::string& text, const ParseOptions& options) {
  return Parser(text, options).Module();
}

Attr ParseAttribute(const std::string& text) {
  const ParseOptions options;
  return Parser(text, options).Attribute();
}

FnRef ParseFn(const std::string& text, const ParseOptions& options) { return ParseModule(text, options).back(); }

}  // namespace weft
