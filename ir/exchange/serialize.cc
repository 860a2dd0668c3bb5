#include "ir/exchange/serialize.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "base/utf8.h"
#include "ir/builder.h"
#include "ir/exchange/weft.pb.h"
#include "ir/prim.h"
#include "ir/text/attribute_names.h"

static_assert(std::endian::native == std::endian::little, "literals are written as they lie in memory");

namespace weft {
namespace {

constexpr char kFormat[] = "weft";
constexpr int kMaxRank = 64;

uint64_t Digest(const std::string& bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The enum of the format counts from 1, since 0 means that nothing was written; otherwise it is that of base/dtype.h.
exchange::DType ToProto(DType dtype) { return static_cast<exchange::DType>(static_cast<int>(dtype) + 1); }
static_assert(static_cast<int>(DType::kTape) + 1 == exchange::TAPE &&
                  static_cast<int>(DType::kF32) + 1 == exchange::F32 && kNumDTypes + 1 == exchange::DType_ARRAYSIZE,
              "the numbers of the format are fixed; translate where base/dtype.h moves");

std::string Bytes(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  if (size > std::numeric_limits<int>::max()) {
    throw UserError(ErrorKind::kUnsupported, {}, "a program of ", size, " bytes; the exchange form ends at 2 GB");
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    WEFT_CHECK(message.SerializeToCodedStream(&out)) << "protobuf refuses to write";
  }
  return bytes;
}

// --- Writing ---

class Writer {
 public:
  explicit Writer(const SerializeOptions& options) : options_(options) {}

  std::string Module(const Fn& fn) {
    AddFn(fn);
    return Bytes(module_);
  }

 private:
  uint32_t String(const std::string& text) {
    auto [it, added] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (added) module_.add_strings(text);
    return it->second;
  }

  static void Fill(exchange::Dim* out, const Dim& d) {
    if (d.is_static()) {
      out->set_size(d.value());
    } else {
      out->set_expression(d.ToString());
    }
  }

  uint32_t TypeIndex(const Type& type) {
    auto [it, added] = types_.try_emplace(type, static_cast<uint32_t>(types_.size()));
    if (added) {
      exchange::Type* out = module_.add_types();
      out->set_dtype(ToProto(type.dtype));
      for (const Dim& d : type.dims) Fill(out->add_dims(), d);
      for (const std::string& axis : type.varying) out->add_varying(axis);
    }
    return it->second;
  }

  // 1 + the position of the location, 0 for none.
  uint32_t Location(Loc loc) {
    std::vector<Loc> chain;  // this place, its caller, ... up to one that is written already
    for (; loc && !locations_.count(loc); loc = loc.caller()) chain.push_back(loc);
    uint32_t caller = loc ? locations_.at(loc) : 0;
    for (; !chain.empty(); chain.pop_back()) {
      const Loc place = chain.back();
      exchange::Location* out = module_.add_locations();
      out->set_file(String(place.file()));
      out->set_line(static_cast<uint32_t>(std::max(0, place.line())));
      out->set_function(String(place.function()));
      for (const std::string& transform : place.transforms()) out->add_transforms(String(transform));
      out->set_caller(caller);
      caller = static_cast<uint32_t>(module_.locations_size());
      locations_.emplace(place, caller);
    }
    return caller;
  }

  static void Fill(exchange::Atom* out, const Atom& atom) {
    if (atom.is_var()) {
      out->set_variable(atom.id());
      return;
    }
    const Tensor& t = atom.literal();
    exchange::Tensor* literal = out->mutable_literal();
    literal->set_dtype(ToProto(t.dtype()));
    for (int64_t size : t.shape()) literal->add_shape(size);
    literal->set_data(std::string(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())));
  }

  void Fill(exchange::Attribute* out, const Attrs::Entry& entry) {
    out->set_name(String(entry.first));
    struct Visitor {
      Writer& w;
      exchange::Attribute* out;
      void operator()(bool b) { out->set_bool_value(b); }
      void operator()(int64_t i) { out->set_int_value(i); }
      void operator()(double d) { out->set_float_value(d); }
      void operator()(const std::string& s) { out->set_string_value(s); }
      void operator()(DType t) { out->set_dtype_value(ToProto(t)); }
      void operator()(const Ints& v) {
        exchange::Ints* list = out->mutable_ints();
        for (int64_t i : v) list->add_values(i);
      }
      void operator()(const Dims& v) {
        exchange::Dims* list = out->mutable_dims();
        for (const Dim& d : v) Fill(list->add_values(), d);
      }
      void operator()(const Types& v) {
        exchange::Types* list = out->mutable_types();
        for (const Type& t : v) list->add_values(w.TypeIndex(t));
      }
      void operator()(const Strings& v) {
        exchange::Strings* list = out->mutable_strings();
        for (const std::string& s : v) list->add_values(s);
      }
      void operator()(const Mesh& v) {
        exchange::Mesh* mesh = out->mutable_mesh();
        for (const Mesh::Axis& a : v.axes) {
          mesh->add_axes(a.name);
          mesh->add_sizes(a.size);
        }
      }
      void operator()(const Shardings& v) {
        exchange::Shardings* list = out->mutable_shardings();
        for (const Sharding& s : v) {
          exchange::Sharding* sharding = list->add_values();
          for (const Strings& axes : s.dims) {
            exchange::AxisList* dim = sharding->add_dims();
            for (const std::string& a : axes) dim->add_axes(a);
          }
          for (const std::string& a : s.partial) sharding->mutable_partial()->add_axes(a);
        }
      }
    };
    std::visit(Visitor{*this, out}, entry.second);
  }

  uint32_t AddFn(const Fn& fn) {
    if (auto it = functions_.find(&fn); it != functions_.end()) return it->second;
    for (const Eqn& e : fn.eqns()) {  // regions come first
      for (const FnRef& region : e.regions) AddFn(*region);
    }
    exchange::Function* out = module_.add_functions();
    out->set_name(fn.name());
    for (const Param& p : fn.params()) {
      exchange::Parameter* param = out->add_parameters();
      param->set_type(TypeIndex(p.type));
      param->set_name(p.name);
      param->set_kind(p.kind == Param::Kind::kConstant ? exchange::Parameter::CONSTANT : exchange::Parameter::ARGUMENT);
    }
    for (const Eqn& e : fn.eqns()) {
      exchange::Equation* eqn = out->add_equations();
      eqn->set_primitive(String(e.prim->name));
      for (const Atom& a : e.operands) Fill(eqn->add_operands(), a);
      for (uint32_t r = 0; r < e.num_results; ++r)
        eqn->add_result_types(TypeIndex(fn.TypeOf(e.result(static_cast<int>(r)))));
      for (const Attrs::Entry& entry : e.attrs.entries()) Fill(eqn->add_attributes(), entry);
      for (const FnRef& region : e.regions) eqn->add_regions(functions_.at(region.get()));
      if (options_.locations) eqn->set_location(Location(e.loc));
    }
    for (const Atom& a : fn.results()) Fill(out->add_results(), a);
    const uint32_t index = static_cast<uint32_t>(functions_.size());
    functions_.emplace(&fn, index);
    return index;
  }

  const SerializeOptions& options_;
  exchange::Module module_;
  std::unordered_map<std::string, uint32_t> strings_;
  absl::flat_hash_map<Type, uint32_t> types_;
  absl::flat_hash_map<Loc, uint32_t> locations_;
  std::unordered_map<const Fn*, uint32_t> functions_;
};

// --- Reading ---

class Reader {
 public:
  Reader(const exchange::Module& module, const DeserializeOptions& options) : module_(module), options_(options) {}

  FnRef Module() {
    for (const exchange::Type& t : module_.types()) types_.push_back(ReadType(t));
    for (int i = 0; i < module_.locations_size(); ++i) ReadLocation(module_.locations(i));
    if (module_.functions_size() == 0) Fail("there is no function");
    for (const exchange::Function& f : module_.functions()) ReadFn(f);
    return functions_.back();
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) const {
    throw UserError(ErrorKind::kParse, {}, "malformed Weft program: ", where_, problem);
  }

  // Element `index` of a table, or an error.
  template <class Table>
  const auto& At(const Table& table, uint64_t index, const char* what) const {
    if (index >= static_cast<uint64_t>(table.size()))
      Fail(std::string("refers to ") + what + " number " + std::to_string(index) + " of " +
           std::to_string(table.size()));
    return table[static_cast<int>(index)];
  }
  const std::string& String(uint32_t index) const { return At(module_.strings(), index, "string"); }

  DType ReadDType(exchange::DType dtype) const {
    if (dtype < exchange::BOOL || dtype > exchange::DType_MAX)
      Fail("an element type of unknown number " + std::to_string(static_cast<int>(dtype)));
    return static_cast<DType>(static_cast<int>(dtype) - 1);
  }

  Dim ReadDim(const exchange::Dim& d) const {
    if (d.kind_case() == exchange::Dim::kSize) {
      if (d.size() < 0) Fail("a size of " + std::to_string(d.size()));
      return Dim(d.size());
    }
    std::optional<Dim> dim;
    if (d.kind_case() == exchange::Dim::kExpression) {
      try {
        dim = Dim::Parse(d.expression());
      } catch (const Error& error) {
        Fail(error.message());
      }
    }
    if (!dim || dim->is_static())
      Fail("a size without a value, or with a malformed expression '" + d.expression() + "'");
    return *dim;
  }

  template <class List>
  Dims ReadDims(const List& list) const {
    if (list.size() > kMaxRank) Fail("a type with " + std::to_string(list.size()) + " dimensions");
    Dims dims;
    for (const exchange::Dim& d : list) dims.push_back(ReadDim(d));
    return dims;
  }

  Type ReadType(const exchange::Type& t) const {
    if (t.varying_size() > kMaxRank) Fail("a type with " + std::to_string(t.varying_size()) + " mesh axes");
    Type type{ReadDType(t.dtype()), ReadDims(t.dims()), {t.varying().begin(), t.varying().end()}};
    for (const std::string& axis : type.varying) CheckName(axis, "a mesh axis");
    if (std::adjacent_find(type.varying.begin(), type.varying.end(), std::greater_equal<>()) != type.varying.end()) {
      Fail("mesh axes that are not in order");
    }
    return type;
  }

  // Attributes and mesh axes stand in the text form as words.
  void CheckName(const std::string& name, const char* what) const {
    const auto word = [](char c) {
      return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    if (name.empty() || name.size() > 255 || (name[0] >= '0' && name[0] <= '9') ||
        !std::all_of(name.begin(), name.end(), word)) {
      Fail(std::string(what) + " with an impossible name");
    }
  }

  // Names are shown to people, and are strings of Python; the format says only that they are bytes.
  std::string Text(const std::string& bytes, const char* what) const {
    if (!IsUtf8(bytes)) Fail(std::string(what) + " that is no UTF-8: \"" + absl::CHexEscape(bytes) + "\"");
    return bytes;
  }

  void ReadLocation(const exchange::Location& l) {
    Loc caller;
    if (l.caller() > 0) caller = At(locations_, uint64_t{l.caller()} - 1, "location");
    if (l.line() > static_cast<uint32_t>(std::numeric_limits<int>::max()))
      Fail("a line of number " + std::to_string(l.line()));
    Loc loc = Loc::File(String(l.file()), static_cast<int>(l.line()), String(l.function()), caller);
    for (uint32_t transform : l.transforms()) {
      if (String(transform).empty()) Fail("a transform without a name");
      loc = loc.Through(String(transform));
    }
    locations_.push_back(loc);
  }

  Atom ReadAtom(const exchange::Atom& a, uint32_t num_vars) const {
    if (a.kind_case() == exchange::Atom::kVariable) {
      if (a.variable() >= num_vars)
        Fail("variable " + std::to_string(a.variable()) + " is used, but only " + std::to_string(num_vars) +
             " are defined before");
      return Var{a.variable()};
    }
    if (a.kind_case() != exchange::Atom::kLiteral) Fail("an operand that is neither variable nor literal");
    const exchange::Tensor& t = a.literal();
    const DType dtype = ReadDType(t.dtype());
    if (t.shape_size() > kMaxRank) Fail("a literal with " + std::to_string(t.shape_size()) + " dimensions");
    const Shape shape(t.shape().begin(), t.shape().end());
    int64_t size = 1;
    bool empty = false;
    for (int64_t n : shape) {
      if (n < 0) Fail("a literal of negative size");
      empty |= n == 0;
      if (__builtin_mul_overflow(size, n, &size)) Fail("a literal of more than 2^63 elements");
    }
    if (empty) size = 0;
    if (size > kMaxLiteralElements)
      Fail("a literal of " + std::to_string(size) + " elements; at most " + std::to_string(kMaxLiteralElements) +
           " are allowed");
    if (t.data().size() != static_cast<size_t>(size) * static_cast<size_t>(ByteWidth(dtype))) {
      Fail("a literal of " + std::to_string(size) + " elements with " + std::to_string(t.data().size()) + " bytes");
    }
    if (dtype == DType::kTape && std::any_of(t.data().begin(), t.data().end(), [](char c) { return c != 0; })) {
      Fail("a tape with records as a literal");
    }
    Tensor tensor(dtype, shape);
    if (size > 0) std::memcpy(tensor.raw(), t.data().data(), t.data().size());
    if (!tensor.HasNumbersAlone()) Fail(std::string("bytes that are no numbers of ") + Name(dtype));
    return Atom(std::move(tensor));
  }

  Attr ReadAttr(const exchange::Attribute& a) const {
    switch (a.value_case()) {
      case exchange::Attribute::kBoolValue: return a.bool_value();
      case exchange::Attribute::kIntValue: return a.int_value();
      case exchange::Attribute::kFloatValue: return a.float_value();
      case exchange::Attribute::kStringValue: return a.string_value();
      case exchange::Attribute::kDtypeValue: return ReadDType(a.dtype_value());
      case exchange::Attribute::kInts: return Ints(a.ints().values().begin(), a.ints().values().end());
      case exchange::Attribute::kDims: return ReadDims(a.dims().values());
      case exchange::Attribute::kTypes: {
        Types types;
        for (uint32_t index : a.types().values()) types.push_back(At(types_, index, "type"));
        return types;
      }
      case exchange::Attribute::kStrings: return Strings(a.strings().values().begin(), a.strings().values().end());
      case exchange::Attribute::kMesh: return ReadMesh(a.mesh());
      case exchange::Attribute::kShardings: {
        Shardings list;
        for (const exchange::Sharding& s : a.shardings().values()) list.push_back(ReadSharding(s));
        return list;
      }
      case exchange::Attribute::VALUE_NOT_SET: break;
    }
    Fail("attribute '" + String(a.name()) + "' has no value");
  }

  Mesh ReadMesh(const exchange::Mesh& m) const {
    if (m.axes_size() != m.sizes_size() || m.axes_size() > kMaxRank)
      Fail("a mesh of " + std::to_string(m.axes_size()) + " axes and " + std::to_string(m.sizes_size()) + " sizes");
    Mesh mesh;
    for (int i = 0; i < m.axes_size(); ++i) {
      CheckName(m.axes(i), "a mesh axis");
      mesh.axes.push_back({m.axes(i), m.sizes(i)});
    }
    return mesh;
  }

  Strings ReadAxes(const exchange::AxisList& list) const {
    for (const std::string& axis : list.axes()) CheckName(axis, "a mesh axis");
    return {list.axes().begin(), list.axes().end()};
  }

  Sharding ReadSharding(const exchange::Sharding& s) const {
    if (s.dims_size() > kMaxRank) Fail("a sharding of " + std::to_string(s.dims_size()) + " dimensions");
    Sharding sharding;
    for (const exchange::AxisList& d : s.dims()) sharding.dims.push_back(ReadAxes(d));
    sharding.partial = ReadAxes(s.partial());
    return sharding;
  }

  void ReadFn(const exchange::Function& f) {
    where_ = "function " + std::to_string(functions_.size()) + ": ";
    const std::string in_function =
        "function " + std::to_string(functions_.size()) + ", '" + Text(f.name(), "a name") + "': ";
    where_ = in_function;
    Builder b(f.name());
    uint32_t num_vars = 0;
    for (const exchange::Parameter& p : f.parameters()) {
      if (p.kind() != exchange::Parameter::ARGUMENT && p.kind() != exchange::Parameter::CONSTANT)
        Fail("a parameter of unknown kind");
      b.Parameter(At(types_, p.type(), "type"), Text(p.name(), "a parameter's name"),
                  p.kind() == exchange::Parameter::CONSTANT ? Param::Kind::kConstant : Param::Kind::kArgument);
      ++num_vars;
    }
    int depth = 1;
    for (int i = 0; i < f.equations_size(); ++i) {
      where_ = in_function + "equation " + std::to_string(i) + ": ";
      ReadEqn(b, f.equations(i), num_vars, depth);
    }
    where_ = in_function + "results: ";
    Atoms results;
    for (const exchange::Atom& a : f.results()) results.push_back(ReadAtom(a, num_vars));
    functions_.push_back(b.Build(results, /*keep_dead=*/true));
    depths_.push_back(depth);
    where_.clear();
  }

  void ReadEqn(Builder& b, const exchange::Equation& e, uint32_t& num_vars, int& depth) const {
    const std::string& name = String(e.primitive());
    const Prim* prim = TryFindPrim(name);
    if (prim == nullptr) Fail("there is no primitive '" + absl::CHexEscape(name) + "'");
    Atoms operands;
    for (const exchange::Atom& a : e.operands()) operands.push_back(ReadAtom(a, num_vars));
    Attrs attrs;
    for (const exchange::Attribute& a : e.attributes()) {
      CheckName(String(a.name()), "an attribute");
      if (!attrs.empty() && !(attrs.entries().back().first < String(a.name())))
        Fail("attributes that are not in the order of their names");
      attrs.Set(String(a.name()), ReadAttr(a));
    }
    std::vector<FnRef> regions;
    for (uint32_t index : e.regions()) {
      regions.push_back(At(functions_, index, "function"));
      depth = std::max(depth, depths_[index] + 1);
    }
    if (depth > kMaxRegionDepth) Fail("functions nested more than " + std::to_string(kMaxRegionDepth) + " deep");
    b.set_loc(e.location() > 0 ? At(locations_, uint64_t{e.location()} - 1, "location") : Loc());
    Atoms results;
    try {
      if (!options_.any_attributes) CheckAttributeNames(*prim, attrs);
      results = b.Emit(*prim, std::move(operands), std::move(attrs), std::move(regions));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      Fail(error.message());
    }
    if (static_cast<int>(results.size()) != e.result_types_size()) {
      Fail(name + " has " + std::to_string(results.size()) + " results here, but " +
           std::to_string(e.result_types_size()) + " are written");
    }
    for (int r = 0; r < e.result_types_size(); ++r) {
      const Type& written = At(types_, e.result_types(r), "type");
      const Type& inferred = b.TypeOf(results[r]);
      if (!(inferred == written))
        Fail("result " + std::to_string(r) + " of " + name + " is " + inferred.ToString() + ", but written as " +
             written.ToString());
    }
    num_vars += static_cast<uint32_t>(results.size());
  }

  const exchange::Module& module_;
  const DeserializeOptions& options_;
  std::string where_;
  std::vector<Type> types_;
  std::vector<Loc> locations_;
  std::vector<FnRef> functions_;
  std::vector<int> depths_;  // of nested regions, per function
};

Error Foreign(const std::string& problem) {
  return UserError(ErrorKind::kParse, {}, "not a whole Weft program: ", problem);
}

}  // namespace

std::string WrapModule(const std::string& module, uint32_t version) {
  exchange::File file;
  file.set_format(kFormat);
  file.set_version(version);
  file.set_module(module);
  file.set_digest(Digest(module));
  return Bytes(file);
}

bool IsSerialized(const std::string& bytes) {
  // Field 1 of File comes first, since fields are written in order.
  return bytes.compare(0, 6, std::string("\x0a\x04") + kFormat) == 0;
}

std::string Serialize(const Fn& fn, const SerializeOptions& options) { return WrapModule(Writer(options).Module(fn)); }

FnRef Deserialize(const std::string& bytes, const DeserializeOptions& options) {
  exchange::File file;
  if (bytes.empty()) throw Foreign("no bytes at all");
  if (bytes.size() > std::numeric_limits<int>::max()) throw Foreign("2 GB or more");
  const bool whole = file.ParseFromString(bytes);
  if (file.format() != kFormat) throw Foreign("the bytes do not begin as one");
  if (file.version() == 0 || file.version() > kSerialVersion) {
    throw UserError(ErrorKind::kParse, {}, "this Weft program is of version ", file.version(),
                    " of the exchange form; this library reads versions 1 to ", kSerialVersion);
  }
  if (!whole) throw Foreign("the bytes are truncated or corrupted");
  if (Digest(file.module()) != file.digest()) throw Foreign("truncated or corrupted: the digest does not match");
  exchange::Module module;
  if (!module.ParseFromString(file.module())) throw Foreign("its module is malformed");
  return Reader(module, options).Module();
}

}  // namespace weft
