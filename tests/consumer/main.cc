#include <cstdio>

#include <tier/fs.h>
#include <tier/version.h>

int main() {
  auto files = tier::open_file_system("mem:");
  if (!files) return std::fprintf(stderr, "%s\n", files.status().message().c_str()), 1;
  return std::printf("tier %s on %s\n", TIER_VERSION, (*files)->url().c_str()) < 0;
}
