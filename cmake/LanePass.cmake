# lane_pass(NAME SOURCES ... LINKS ...): one library of the compiler. A pass links only to the passes before it, so the
# linker keeps the data going one way.
function(lane_pass name)
  cmake_parse_arguments(P "" "" "SOURCES;LINKS" ${ARGN})
  add_library(lane_${name} STATIC ${P_SOURCES})
  target_include_directories(lane_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(lane_${name} PUBLIC fmt::fmt ${P_LINKS} PRIVATE lane_options)
endfunction()
