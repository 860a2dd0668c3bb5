// Format of the objects: System V ABI, AMD64 supplement, chapters 4.3 (sections) and 4.4 (relocations: S is the symbol,
// A the addend, P the place, G the place of the word that holds the symbol's address).
#include "lowering/cpu/link.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "ir/error.h"
#include "lowering/abi/code_image.h"

namespace weft {
namespace {

constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();
// Reached by `jmp *slot(%rip)` where code calls what the image does not have.
constexpr uint64_t kStubBytes = 8;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// One object file, read in place.
class Object {
 public:
  explicit Object(std::string_view bytes) : bytes_(bytes) {
    const auto header = Read<Elf64_Ehdr>(0);
    WEFT_CHECK(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_REL &&
               header.e_machine == EM_X86_64)
        << "link: not an object file for x86-64";
    for (size_t i = 0; i < header.e_shnum; ++i)
      sections.push_back(Read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type != SHT_SYMTAB) continue;
      for (uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Sym))
        symbols.push_back(Read<Elf64_Sym>(s.sh_offset + at));
      names_ = sections.at(s.sh_link).sh_offset;
    }
    place.assign(sections.size(), kNowhere);
  }

  template <class T>
  T Read(uint64_t at) const {
    WEFT_CHECK(at <= bytes_.size() && sizeof(T) <= bytes_.size() - at) << "link: an object file is cut short";
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  std::string_view NameOf(const Elf64_Sym& symbol) const { return bytes_.data() + names_ + symbol.st_name; }
  std::string_view BytesOf(const Elf64_Shdr& section) const {
    return bytes_.substr(section.sh_offset, section.sh_size);
  }
  // Whether it is part of the image. Tables for unwinding are not: no exception passes through compiled code.
  static bool IsLoaded(const Elf64_Shdr& s) {
    return (s.sh_flags & SHF_ALLOC) != 0 && s.sh_type != SHT_X86_64_UNWIND && s.sh_size > 0;
  }

  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;
  std::vector<uint64_t> place;  // of each section, in the image

 private:
  std::string_view bytes_;
  uint64_t names_ = 0;
};

class Linker {
 public:
  explicit Linker(const std::vector<std::string>& files) : objects_(files.begin(), files.end()) {}

  std::string Link() {
    CollectSymbols();
    // At the most: what relocations ask for lies between the sections.
    uint64_t words = 0, stubs = 0;
    ForEachRelocation([&](const Object& object, const Elf64_Shdr&, const Elf64_Rela& r) {
      const bool elsewhere = Definition(object, SymbolOf(object, r)).first == nullptr;
      words += ReadsWord(TypeOf(r)) || elsewhere ? 1 : 0;
      stubs += elsewhere ? 1 : 0;
    });
    PlaceSections(words, stubs);
    ForEachRelocation([&](const Object& object, const Elf64_Shdr&, const Elf64_Rela& r) { Reserve(object, r); });
    Fill();
    ForEachRelocation([&](const Object& object, const Elf64_Shdr& section, const Elf64_Rela& r) {
      Apply(object, object.place[section.sh_info] + r.r_offset, r);
    });
    return Image();
  }

 private:
  // Code and constants first, then what is written, then what begins as zeros.
  void PlaceSections(uint64_t words, uint64_t stubs) {
    const auto place = [&](auto wanted) {
      for (Object& object : objects_) {
        for (size_t i = 0; i < object.sections.size(); ++i) {
          const Elf64_Shdr& s = object.sections[i];
          if (!Object::IsLoaded(s) || !wanted((s.sh_flags & SHF_WRITE) != 0, s.sh_type == SHT_NOBITS)) continue;
          WEFT_CHECK((s.sh_flags & SHF_TLS) == 0) << "link: thread-local variables";
          WEFT_CHECK(s.sh_addralign <= kCodePage) << "link: a section is aligned to " << s.sh_addralign << " bytes";
          end_ = RoundUp(end_, std::max<uint64_t>(1, s.sh_addralign));
          object.place[i] = end_;
          end_ += s.sh_size;
        }
      }
    };
    place([](bool written, bool) { return !written; });
    stubs_ = RoundUp(end_, kStubBytes);
    if (stubs > 0) end_ = stubs_ + stubs * kStubBytes;
    code_end_ = end_;
    data_ = end_ = RoundUp(end_, kCodePage);
    place([](bool written, bool zeros) { return written && !zeros; });
    words_ = end_ = RoundUp(end_, sizeof(uint64_t));
    data_end_ = end_ = words_ + words * sizeof(uint64_t);
    place([](bool written, bool zeros) { return written && zeros; });
  }

  using Symbol = std::pair<const Object*, const Elf64_Sym*>;

  void CollectSymbols() {
    for (const Object& object : objects_) {
      for (const Elf64_Sym& symbol : object.symbols) {
        if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
        const bool first = defined_.emplace(object.NameOf(symbol), Symbol(&object, &symbol)).second;
        WEFT_CHECK(first) << "link: two objects define " << std::string(object.NameOf(symbol));
        if (ELF64_ST_VISIBILITY(symbol.st_other) != STV_HIDDEN) ++num_shown_;
      }
    }
  }

  // The symbol where it is defined; null where the C library has it.
  Symbol Definition(const Object& object, const Elf64_Sym& symbol) const {
    if (symbol.st_shndx != SHN_UNDEF) return {&object, &symbol};
    const auto found = defined_.find(object.NameOf(symbol));
    return found == defined_.end() ? Symbol(nullptr, nullptr) : found->second;
  }

  static uint64_t PlaceOf(const Symbol& symbol) {
    const auto& [object, s] = symbol;
    WEFT_CHECK(s->st_shndx < object->place.size() && object->place[s->st_shndx] != kNowhere)
        << "link: " << std::string(object->NameOf(*s)) << " lies in no section of the image";
    return object->place[s->st_shndx] + s->st_value;
  }

  // Where the symbol lies; kNowhere where the C library has it.
  uint64_t Find(const Object& object, const Elf64_Sym& symbol) const {
    const Symbol found = Definition(object, symbol);
    return found.first == nullptr ? kNowhere : PlaceOf(found);
  }

  static const Elf64_Sym& SymbolOf(const Object& object, const Elf64_Rela& r) {
    return object.symbols.at(ELF64_R_SYM(r.r_info));
  }
  static uint32_t TypeOf(const Elf64_Rela& r) { return static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)); }

  template <class F>
  void ForEachRelocation(F f) {
    for (const Object& object : objects_) {
      for (const Elf64_Shdr& s : object.sections) {
        if (s.sh_type != SHT_RELA || !Object::IsLoaded(object.sections.at(s.sh_info))) continue;
        for (uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Rela))
          f(object, s, object.Read<Elf64_Rela>(s.sh_offset + at));
      }
    }
  }

  static bool ReadsWord(uint32_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  }

  // The word with the address of a symbol; made when it is first asked for.
  uint64_t WordFor(const Object& object, const Elf64_Sym& symbol) {
    const uint64_t target = Find(object, symbol);
    if (target == kNowhere) {
      const auto [found, first] = imports_.emplace(object.NameOf(symbol), NextWord());
      if (first) used_words_ += 1;
      return found->second;
    }
    const auto [found, first] = addresses_.emplace(target, NextWord());
    if (first) used_words_ += 1;
    return found->second;
  }
  uint64_t NextWord() const { return words_ + used_words_ * sizeof(uint64_t); }

  void Reserve(const Object& object, const Elf64_Rela& r) {
    const Elf64_Sym& symbol = SymbolOf(object, r);
    const uint32_t type = TypeOf(r);
    if (ReadsWord(type)) {
      WordFor(object, symbol);
    } else if (Find(object, symbol) == kNowhere && type != R_X86_64_64) {
      WordFor(object, symbol);
      stub_of_.emplace(object.NameOf(symbol), stubs_ + stub_of_.size() * kStubBytes);
    }
  }

  void Fill() {
    memory_.assign(data_end_, '\0');
    for (const Object& object : objects_) {
      for (size_t i = 0; i < object.sections.size(); ++i) {
        if (object.place[i] == kNowhere || object.sections[i].sh_type == SHT_NOBITS) continue;
        const std::string_view bytes = object.BytesOf(object.sections[i]);
        memory_.replace(object.place[i], bytes.size(), bytes);
      }
    }
    for (const auto& [name, at] : stub_of_) {
      memory_[at] = '\xff';  // jmp *rel32(%rip)
      memory_[at + 1] = '\x25';
      WriteRelative(at + 2, imports_.at(name) - 4);
    }
    for (const auto& [target, word] : addresses_) {
      Write<uint64_t>(word, target);
      rebases_.push_back(word);
    }
  }

  template <class T>
  void Write(uint64_t at, T value) {
    WEFT_CHECK(at <= memory_.size() && sizeof(T) <= memory_.size() - at) << "link: a relocation outside of its section";
    std::memcpy(memory_.data() + at, &value, sizeof(T));
  }
  // S + A - P in 32 bits.
  void WriteRelative(uint64_t at, uint64_t target) {
    const auto distance = static_cast<int64_t>(target - at);
    WEFT_CHECK(distance == static_cast<int32_t>(distance)) << "link: an image of more than 2 GiB";
    Write<int32_t>(at, static_cast<int32_t>(distance));
  }

  void Apply(const Object& object, uint64_t at, const Elf64_Rela& r) {
    const Elf64_Sym& symbol = SymbolOf(object, r);
    const uint32_t type = TypeOf(r);
    const auto addend = static_cast<uint64_t>(r.r_addend);
    if (ReadsWord(type)) return WriteRelative(at, WordFor(object, symbol) + addend);
    uint64_t target = Find(object, symbol);
    if (type == R_X86_64_64 && target == kNowhere) {
      WEFT_CHECK(addend == 0) << "link: a place inside of " << std::string(object.NameOf(symbol));
      more_imports_.emplace_back(object.NameOf(symbol), at);
      return;
    }
    if (target == kNowhere) target = stub_of_.at(object.NameOf(symbol));
    switch (type) {
      case R_X86_64_64:
        Write<uint64_t>(at, target + addend);
        rebases_.push_back(at);
        return;
      case R_X86_64_PC32:
      case R_X86_64_PLT32: return WriteRelative(at, target + addend);
      case R_X86_64_PC64: return Write<uint64_t>(at, target + addend - at);
      default: WEFT_CHECK(false) << "link: relocation " << type << " of " << std::string(object.NameOf(symbol));
    }
  }

  std::string Image() const {
    CodeImageHeader header;
    header.code_bytes = code_end_;
    header.data_bytes = data_end_ - data_;
    header.memory_bytes = end_ - data_;
    header.num_imports = imports_.size() + more_imports_.size();
    header.num_rebases = rebases_.size();
    header.num_symbols = num_shown_;
    std::string image;
    const auto put = [&](const auto& value) { image.append(reinterpret_cast<const char*>(&value), sizeof value); };
    const auto put_name = [&](std::string_view name, uint64_t at) {
      put(CodeImageName{at, name.size()});
      image += name;
    };
    put(header);
    image.append(memory_, 0, code_end_);
    image.append(memory_, data_);
    for (const auto& [name, at] : imports_) put_name(name, at);
    for (const auto& [name, at] : more_imports_) put_name(name, at);
    for (const uint64_t at : rebases_) put(at);
    for (const auto& [name, symbol] : defined_) {
      if (ELF64_ST_VISIBILITY(symbol.second->st_other) != STV_HIDDEN) put_name(name, PlaceOf(symbol));
    }
    return image;
  }

  std::vector<Object> objects_;
  // Places in the image.
  uint64_t stubs_ = 0, code_end_ = 0, data_ = 0, words_ = 0, data_end_ = 0, end_ = 0;
  uint64_t used_words_ = 0;
  std::map<std::string_view, Symbol> defined_;
  uint64_t num_shown_ = 0;
  std::map<std::string_view, uint64_t> imports_, stub_of_;
  std::vector<std::pair<std::string_view, uint64_t>> more_imports_;
  std::map<uint64_t, uint64_t> addresses_;  // of a place: the word that holds its address
  std::vector<uint64_t> rebases_;
  std::string memory_;
};

}  // namespace

std::string LinkObjects(const std::vector<std::string>& objects) { return Linker(objects).Link(); }

}  // namespace weft
