#include "app/job.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "app/options.h"
#include "app/output.h"
#include "app/program.h"
#include "msdbg/located.h"
#include "msdbg/shared_analysis.h"
#include "msdbg/threads.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kPlugin = "libmsdbg_mpi.so";

std::optional<int64_t> number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::nullopt : parse_int(value);
}

/// This process's number in its job; nothing in a single process.
std::optional<int64_t> place_in_job() {
  const char* wanted = std::getenv("MSDBG_MPI");
  if (wanted != nullptr && std::string_view(wanted) == "0") return std::nullopt;
  if (const auto index = number_in("OMPI_COMM_WORLD_RANK")) {
    return number_in("OMPI_COMM_WORLD_SIZE").value_or(1) > 1 ? index : std::nullopt;
  }
  return number_in("SLURM_NTASKS").value_or(2) > 1 ? number_in("PMIX_RANK") : std::nullopt;
}

/// Processes on the same machine share its processors.
void divide_processors() {
  const int64_t here =
      std::max<int64_t>(1, number_in("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(number_in("SLURM_NTASKS_PER_NODE").value_or(1)));
  const int64_t all = std::max<int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
  const int64_t bound = std::max<int64_t>(1, std::thread::hardware_concurrency());
  set_processors(static_cast<unsigned>(std::min(bound, std::max<int64_t>(1, all / here))));
}

Result<void*> load_plugin() {
  std::error_code failed;
  const std::filesystem::path& folder = program_file().folder;
  std::string why;
  for (const std::filesystem::path& place : {folder / kPlugin, folder.parent_path() / MSDBG_LIBRARY_DIR / kPlugin}) {
    if (!std::filesystem::exists(place, failed)) continue;
    // The components of Open MPI look for its symbols.
    if (void* plugin = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL)) return plugin;
    why = ::dlerror();
  }
#ifdef MSDBG_HAVE_MPI
  if (why.empty()) why = fmt::format("{} is neither next to msdbg nor in {}", kPlugin, MSDBG_LIBRARY_DIR);
#else
  if (why.empty()) why = "this msdbg was built without MPI";
#endif
  return Status(Code::kInvalidArgument,
                fmt::format("mpirun: {}; start msdbg without mpirun, or set MSDBG_MPI=0 if each process is meant to "
                            "run the command by itself",
                            printable(why)));
}

/// Null if the plugin has no such function.
template <typename Function>
Function plugin_function(void* plugin, const char* name) {
  return reinterpret_cast<Function>(::dlsym(plugin, name));
}

// ---- the processes that read ----

int serve(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGINT, SIG_IGN);  // process 0 decides
  const bool served = serve_team(socket, {{std::string(kMeasureWork), measure_handler(open_located)},
                                          {std::string(kCompareWork), compare_handler(open_located)}});
  return served ? kExitClean : kExitInternal;
}

/// A process that mpirun started: the relay. Its child reads.
int run_reader() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return kExitInternal;
  const pid_t child = ::fork();
  if (child < 0) return kExitInternal;
  if (child == 0) {
    ::close(sockets[0]);
    ::_exit(serve(sockets[1]));
  }
  ::close(sockets[1]);
  const auto plugin = load_plugin();  // process 0 reports the same error
  const TeamRelay relay = plugin ? plugin_function<TeamRelay>(*plugin, kTeamRelay) : nullptr;
  if (relay != nullptr) return relay(std::string(kVersion).c_str(), sockets[0], child);
  ::kill(child, SIGKILL);
  return exit_status_for(plugin ? Status(Code::kInternal, "") : plugin.status());
}

// ---- process 0 ----

/// mpirun gives process 0 a terminal as standard output whatever its own is: results would be laid out for it, with colours. During its
/// lifetime, standard output is a pipe; a child copies it.
class PlainOutput {
 public:
  PlainOutput() {
    int ends[2];
    if (::isatty(STDOUT_FILENO) == 0 || ::pipe2(ends, O_CLOEXEC) != 0) return;
    before_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    copier_ = before_ < 0 ? -1 : ::fork();
    if (copier_ == 0) {
      ::close(ends[1]);
      copy(ends[0]);
    }
    if (copier_ > 0) ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~PlainOutput() {
    if (copier_ <= 0) return;
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);  // the copier sees the end
    ::close(before_);
    ::waitpid(copier_, nullptr, 0);
  }
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 private:
  [[noreturn]] static void copy(int from) {
    ::signal(SIGTERM, SIG_IGN);  // what was gathered must still get through
    ::signal(SIGINT, SIG_IGN);
    char block[65536];
    for (;;) {
      const ssize_t n = ::read(from, block, sizeof block);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) ::_exit(0);
      for (ssize_t at = 0; at < n;) {
        const ssize_t written = ::write(STDOUT_FILENO, block + at, static_cast<size_t>(n - at));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) ::_exit(1);
        at += written;
      }
    }
  }

  int before_ = -1;
  pid_t copier_ = -1;
};

void on_terminate(int) { Team::signal_lost(); }

Result<std::unique_ptr<TeamLink>> connect_team() {
  const auto plugin = load_plugin();
  if (!plugin) return plugin.status();
  char error[256] = "has no function to open a team";
  const auto open = plugin_function<TeamOpen>(*plugin, kTeamOpen);
  if (TeamLink* link = open == nullptr ? nullptr : open(std::string(kVersion).c_str(), error, sizeof error))
    return std::unique_ptr<TeamLink>(link);
  return Status(Code::kInternal, fmt::format("mpirun: {} {}", kPlugin, printable(error)));
}

}  // namespace

int run_in_job(const std::function<int()>& command) {
  const std::optional<int64_t> place = place_in_job();
  if (!place) return command();
  divide_processors();
  if (*place > 0) return run_reader();
  const PlainOutput output;  // before threads start
  auto link = connect_team();
  if (!link) return report_failure(link.status());
  Team team(std::move(*link));
  struct sigaction action = {};
  action.sa_handler = on_terminate;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  const int status = command();
  if (team.lost().ok()) return status;
  team.poll();  // the reason may have arrived by now
  report_failure(Status(Code::kPeerLost, team.lost().message() + "; the result has what was gathered until then"));
  return kExitIncomplete;
}

}  // namespace msdbg::app
