/* two_models LLAMA QWEN2: continues a prompt with two models of one process, through their C interfaces. */
#include <stdint.h>
#include <stdio.h>

#define INTERFACE(NAME)                                                                                             \
  int NAME##_open(const char*, const char*, int, void**, char*, size_t);                                            \
  int NAME##_prefill(void*, const int*, int);                                                                       \
  int NAME##_decode(void*, int);                                                                                    \
  int NAME##_sample(void*, double, int, double, double, uint64_t, int*);                                            \
  int NAME##_reset(void*);                                                                                          \
  const char* NAME##_message(const void*);                                                                          \
  void NAME##_close(void*);
INTERFACE(llama_model)
INTERFACE(lane_program)

static int check(int code, const char* why) {
  if (code) fprintf(stderr, "code %d: %s\n", code, why);
  return code;
}

static int open_model(int (*open)(const char*, const char*, int, void**, char*, size_t), const char* base, void** model) {
  char checkpoint[4096], sidecar[4096], why[512];
  snprintf(checkpoint, sizeof checkpoint, "%s.gguf", base);
  snprintf(sidecar, sizeof sidecar, "%s.lane", base);
  return check(open(checkpoint, sidecar, 0, model, why, sizeof why), why);
}

#define CONTINUE(NAME, MODEL, LABEL)                                                                                \
  do {                                                                                                              \
    const int prompt[] = {5, 6, 7};                                                                                 \
    int id = 0;                                                                                                     \
    if (check(NAME##_prefill(MODEL, prompt, 3), NAME##_message(MODEL))) return 1;                                   \
    printf("\"%s\": [", LABEL);                                                                                     \
    for (int i = 0; i < 8; ++i) {                                                                                   \
      if (check(NAME##_sample(MODEL, 0, 0, 1, 0, 0, &id), NAME##_message(MODEL))) return 1;                         \
      printf("%s%d", i ? ", " : "", id);                                                                            \
      if (check(NAME##_decode(MODEL, id), NAME##_message(MODEL))) return 1;                                         \
    }                                                                                                               \
    printf("]");                                                                                                    \
  } while (0)

int main(int argc, char** argv) {
  void *llama = NULL, *qwen2 = NULL, *none = NULL;
  char why[512];
  const int wrong = 1 << 30;
  if (argc != 3) return 2;
  if (llama_model_open("no such file", "no such file", 0, &none, why, sizeof why) != 5 || none) return 3;
  if (open_model(llama_model_open, argv[1], &llama) || open_model(lane_program_open, argv[2], &qwen2)) return 1;
  if (llama_model_decode(llama, wrong) != 2 || llama_model_prefill(llama, &wrong, 0) != 2) return 4;
  printf("{");
  CONTINUE(llama_model, llama, "llama");
  printf(", ");
  CONTINUE(lane_program, qwen2, "qwen2");
  printf(", ");
  if (check(llama_model_reset(llama), llama_model_message(llama))) return 1;
  CONTINUE(llama_model, llama, "llama_again");
  printf("}\n");
  llama_model_close(llama);
  lane_program_close(qwen2);
  return 0;
}
