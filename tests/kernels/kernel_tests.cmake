# The tests of kernels and what they link, for the host chip and for a GPU alike. Who includes this has defined
#   lane_kernel_library(NAME SOURCES ... KERNELS ... LINKS ...)
#   lane_kernel_test(NAME SOURCES ... [HOST ...] KERNELS ... LINKS ...)
# KERNELS are such libraries; HOST are sources that contain no kernel.
lane_kernel_library(format_kernels SOURCES format_kernels.cpp format_kernels_small.cpp format_kernels_super.cpp)
# Schedules run in process: the kernels of all ops, and what calls them.
lane_kernel_library(executor
  SOURCES kernel_registry.cpp schedule_executor.cpp fused_kernels_floats_small.cpp fused_kernels_floats_super.cpp
          fused_kernels_int8x2_small.cpp fused_kernels_int8x2_super.cpp streamed_kernels.cpp chained_kernels.cpp tiled_kernels.cpp batched_kernels.cpp mma_int8_kernels.cpp
          attention_kernels.cpp
  KERNELS format_kernels
  LINKS lane_plan)

lane_kernel_test(quant_test SOURCES quant_test.cpp KERNELS format_kernels LINKS lane_tables)
lane_kernel_test(product_test SOURCES product_test.cpp product_int8_test.cpp product_bits_test.cpp
                 KERNELS format_kernels LINKS lane_tables)
lane_kernel_test(finite_test SOURCES finite_test.cpp LINKS lane_tables)
lane_kernel_test(loader_test SOURCES loader_test.cpp LINKS lane_tables lane_test_support)
lane_kernel_test(streamed_test SOURCES streamed_test.cpp LINKS lane_tables)
lane_kernel_test(chained_test SOURCES chained_test.cpp post_normed_test.cpp LINKS lane_tables)
lane_kernel_test(tiled_test SOURCES tiled_test.cpp LINKS lane_weights lane_tables)
lane_kernel_test(batched_test SOURCES batched_test.cpp LINKS lane_tables)
lane_kernel_test(mma_int8_test SOURCES mma_int8_test.cpp LINKS lane_tables)
lane_kernel_test(chunk_test SOURCES chunk_test.cpp LINKS lane_tables)
lane_kernel_test(float_chunk_test SOURCES float_chunk_test.cpp LINKS lane_tables)
lane_kernel_test(attention_test SOURCES attention_split_test.cpp attention_chunk_test.cpp LINKS lane_tables)
lane_kernel_test(schedule_test HOST schedule_test.cpp schedule_attention_test.cpp schedule_delta_test.cpp
                 KERNELS executor LINKS lane_test_support lane_spec)
lane_kernel_test(sweep_test HOST sweep_test.cpp KERNELS executor LINKS lane_test_support lane_spec lane_reference)
lane_kernel_test(op_test SOURCES expert_groups_test.cpp HOST op_test.cpp kernel_table_test.cpp
                 KERNELS executor LINKS lane_test_support lane_reference lane_kernels)
