# One interface target that every target of ours links: warnings, and what the build options ask for.
add_library(lane_options INTERFACE)
set(errors $<$<BOOL:${LANE_WERROR}>:-Werror>)
target_compile_options(lane_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;${errors}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall;$<$<BOOL:${LANE_WERROR}>:-Werror=all-warnings>>")
if(LANE_SANITIZE)
  target_compile_options(lane_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -g -O1)
  target_link_options(lane_options INTERFACE -fsanitize=address,undefined)
endif()
if(LANE_STATIC)
  target_link_options(lane_options INTERFACE -static)
endif()
