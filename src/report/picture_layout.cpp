#include "report/picture_layout.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <graphviz/gvc.h>

#include <filesystem>
#include <memory>
#include <mutex>

#include "msdbg/sanitizers.h"

// Graphviz keeps what its plugins allocate until the process ends; that is not our leak.
#if defined(MSDBG_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace msdbg {
namespace {

constexpr double kPerInch = 72;
constexpr const char* kLayoutSymbol = "gvplugin_dot_layout_LTX_library";

class LeakPause {
 public:
#if defined(MSDBG_ASAN)
  LeakPause() { __lsan_disable(); }
  ~LeakPause() { __lsan_enable(); }
#else
  LeakPause() {}
#endif
  LeakPause(const LeakPause&) = delete;
  LeakPause& operator=(const LeakPause&) = delete;
};

/// Graphviz wants writable strings although it only reads them.
char* word(std::string& text) { return text.data(); }

void set_default(Agraph_t* graph, int kind, std::string name, std::string value) {
  agattr(graph, kind, word(name), word(value));
}

void set(void* object, std::string name, double value) {
  std::string text = fmt::format("{:.4f}", value);
  std::string none;
  agsafeset(object, word(name), word(text), word(none));
}

int drop_message(char* text) {
  log(LogLevel::kDebug, std::string("graphviz: ") + text);
  return 0;
}

/// In a bundle (tools/bundle), the plugin lies next to Graphviz's library. Elsewhere null: Graphviz then loads the plugins in its own list.
void* bundled_layout() {
  Dl_info graphviz = {};
  if (::dladdr(reinterpret_cast<void*>(&gvContext), &graphviz) == 0) return nullptr;
  const std::filesystem::path file = std::filesystem::path(graphviz.dli_fname).parent_path() / "libgvplugin_dot_layout.so.6";
  void* plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // until the process ends
  return plugin == nullptr ? nullptr : ::dlsym(plugin, kLayoutSymbol);
}

GVC_t* start_graphviz() {
  static void* const layout = bundled_layout();
  const lt_symlist_t plugins[] = {{kLayoutSymbol, layout}, {nullptr, nullptr}};
  return layout == nullptr ? gvContext() : gvContextPlugins(plugins, 0);
}

struct Job {
  GVC_t* context = nullptr;
  Agraph_t* graph = nullptr;
  bool laid_out = false;
  ~Job() {
    if (laid_out) gvFreeLayout(context, graph);
    if (graph) agclose(graph);
    if (context) gvFreeContext(context);
  }
};

}  // namespace

Result<PictureLayout> layout_picture(const PictureGraph& picture, const std::vector<BoxSize>& sizes) {
  static std::mutex one_at_a_time;  // Graphviz has global state
  const std::lock_guard lock(one_at_a_time);
  const LeakPause pause;
  PictureLayout layout;
  if (picture.nodes.empty()) return layout;
  agseterrf(drop_message);
  Job job;
  job.context = start_graphviz();
  std::string name = "g";
  job.graph = agopen(word(name), Agdirected, nullptr);
  if (!job.context || !job.graph) return Status(Code::kInternal, "picture: Graphviz could not be started");
  set_default(job.graph, AGRAPH, "rankdir", picture.left_to_right ? "LR" : "TB");
  set_default(job.graph, AGRAPH, "nodesep", "0.25");
  set_default(job.graph, AGRAPH, "ranksep", "0.42");
  // Limits the search for few crossings: a dense picture takes a second, not minutes.
  set_default(job.graph, AGRAPH, "nslimit", "4");
  set_default(job.graph, AGRAPH, "mclimit", "0.5");
  set_default(job.graph, AGNODE, "shape", "box");
  set_default(job.graph, AGNODE, "label", "");  // boxes have the size of our text; Graphviz then needs no fonts
  set_default(job.graph, AGNODE, "fixedsize", "true");
  set_default(job.graph, AGEDGE, "arrowhead", "normal");
  set_default(job.graph, AGEDGE, "arrowsize", "0.6");

  std::vector<Agnode_t*> nodes;
  for (size_t i = 0; i < picture.nodes.size(); ++i) {
    std::string id = fmt::format("n{}", i);
    nodes.push_back(agnode(job.graph, word(id), 1));
    set(nodes.back(), "width", sizes[i].width / kPerInch);
    set(nodes.back(), "height", sizes[i].height / kPerInch);
  }
  std::vector<Agedge_t*> edges;
  for (size_t i = 0; i < picture.edges.size(); ++i) {
    std::string id = fmt::format("e{}", i);  // unique names keep parallel edges apart
    edges.push_back(agedge(job.graph, nodes[picture.edges[i].from], nodes[picture.edges[i].to], word(id), 1));
  }
  if (gvLayout(job.context, job.graph, "dot") != 0) {
    return Status(Code::kUnsupported, "picture: Graphviz has no 'dot' layout here; install the package libgvc6, or use --format dot");
  }
  job.laid_out = true;

  const boxf bounds = GD_bb(job.graph);
  layout.width = bounds.UR.x - bounds.LL.x;
  layout.height = bounds.UR.y - bounds.LL.y;
  auto point = [&](pointf p) { return Point{p.x - bounds.LL.x, bounds.UR.y - p.y}; };
  for (Agnode_t* node : nodes) layout.centres.push_back(point(ND_coord(node)));
  for (Agedge_t* edge : edges) {
    std::vector<Point> curve;
    const splines* lines = ED_spl(edge);
    if (lines && lines->size > 0) {
      const bezier& line = lines->list[0];
      for (int i = 0; i < line.size; ++i) curve.push_back(point(line.list[i]));
      curve.push_back(line.eflag ? point(line.ep) : curve.back());
    }
    layout.curves.push_back(std::move(curve));
  }
  return layout;
}

}  // namespace msdbg
