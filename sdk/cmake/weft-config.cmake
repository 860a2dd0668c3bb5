# find_package(weft) gives:
#
#   weft::weft               for programs: the headers and libweft.so, which makes, transforms and interprets functions
#   weft::headers            the headers alone
#   weft_add_plugin(NAME SOURCES...)   a plugin, NAME.so, for `weft opt --load=` and `weft.load_plugin`
#
# Needs Abseil's headers (Debian: libabsl-dev), of the version that this Weft was built with.
include_guard(GLOBAL)
get_filename_component(_weft_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(WEFT_PROGRAM "${_weft_prefix}/bin/weft")

if(NOT TARGET weft::headers)
  add_library(weft::headers INTERFACE IMPORTED)
  set_target_properties(weft::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_weft_prefix}/include/weft"
    INTERFACE_COMPILE_FEATURES cxx_std_20)

  find_package(absl REQUIRED)
  add_library(weft::weft SHARED IMPORTED)
  set_target_properties(weft::weft PROPERTIES
    IMPORTED_LOCATION "${_weft_prefix}/lib/libweft.so"
    INTERFACE_LINK_LIBRARIES "weft::headers;absl::strings;absl::hash;absl::raw_hash_set")
endif()

# A plugin links with nothing of Weft: whoever loads it has one copy of everything inside, and it must be that one.
function(weft_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE weft::headers)
  set_target_properties(${name} PROPERTIES PREFIX "" POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
endfunction()
