#include "engine/timeline/svg.h"

#include <algorithm>
#include <map>
#include <vector>

namespace redecode {
namespace {

constexpr int kBoxWidth = 150, kBoxHeight = 40, kGapX = 30, kLaneHeight = 80, kLeft = 90, kTop = 50;
constexpr uint32_t kAround = 2;  // ops of a stream shown before and after one of the finding's

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most - 1)) + "…";
}

std::string n(int value) { return std::to_string(value); }

class Picture {
 public:
  Picture(const Program& program, const OpGraph& graph, const Finding& finding)
      : program_(program), graph_(graph), finding_(finding) {}

  std::string run() {
    choose();
    std::string body;
    for (size_t i = 0; i < streams_.size(); ++i) body += lane(i);
    for (const uint32_t node : shown_)
      for (const uint32_t pred : graph_.preds_of(node))
        if (place_.contains(pred)) body += edge(pred, node);
    for (const uint32_t node : shown_) body += box(node);
    body += missing_edge();
    const int width = std::max(720, kLeft + static_cast<int>(shown_.size()) * (kBoxWidth + kGapX));
    const int height = kTop + static_cast<int>(streams_.size()) * kLaneHeight + 40;
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + n(width) + "\" height=\"" +
           n(height) + "\" viewBox=\"0 0 " + n(width) + ' ' + n(height) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n"
           "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
           "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/>"
           "</marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
           text(12, 22, title(), "#111111", "start") + body + "</svg>\n";
  }

 private:
  const Command& command(uint32_t node) const { return program_.commands[graph_.commands[node]]; }
  StreamId stream_of(uint32_t node) const {
    const Command& c = command(node);
    return c.kind == CommandKind::host ? kHost : c.stream;
  }

  void choose() {
    std::vector<uint32_t> marked;
    for (const FindingSide* side : {&finding_.first, &finding_.second}) {
      if (side->op.empty() || side->command >= graph_.node_of.size()) continue;
      const uint32_t node = graph_.node_of[side->command];
      if (node != OpGraph::kNoNode) marked.push_back(node);
    }
    marked_ = marked;
    for (const uint32_t node : marked) add_with_neighbours(node);
    std::ranges::sort(shown_);
    shown_.erase(std::ranges::unique(shown_).begin(), shown_.end());
    for (const uint32_t node : shown_)
      if (std::ranges::find(streams_, stream_of(node)) == streams_.end())
        streams_.push_back(stream_of(node));
    std::ranges::sort(streams_);
    for (size_t i = 0; i < shown_.size(); ++i) place_[shown_[i]] = static_cast<int>(i);
  }

  void add_with_neighbours(uint32_t node) {
    shown_.push_back(node);
    uint32_t left = kAround;
    for (uint32_t at = node; at-- > 0 && left > 0;)
      if (stream_of(at) == stream_of(node)) shown_.push_back(at), --left;
    left = kAround;
    for (uint32_t at = node + 1; at < graph_.size() && left > 0; ++at)
      if (stream_of(at) == stream_of(node)) shown_.push_back(at), --left;
  }

  int x_of(uint32_t node) const { return kLeft + place_.at(node) * (kBoxWidth + kGapX); }
  int y_of(uint32_t node) const {
    const auto lane = std::ranges::find(streams_, stream_of(node)) - streams_.begin();
    return kTop + static_cast<int>(lane) * kLaneHeight + (kLaneHeight - kBoxHeight) / 2;
  }

  static std::string text(int x, int y, const std::string& what, const char* colour,
                          const char* anchor) {
    return "<text x=\"" + n(x) + "\" y=\"" + n(y) + "\" fill=\"" + colour + "\" text-anchor=\"" +
           anchor + "\">" + escaped(what) + "</text>\n";
  }

  std::string title() const {
    return std::string(to_text(finding_.kind)) + " (" + std::string(check_of(finding_)) +
           "), step " + std::to_string(finding_.step) +
           (finding_.missing_edge.empty() ? "" : ": no edge " + finding_.missing_edge);
  }

  std::string lane(size_t index) const {
    const int y = kTop + static_cast<int>(index) * kLaneHeight + kLaneHeight / 2;
    const StreamId s = streams_[index];
    return "<line x1=\"" + n(kLeft - 10) + "\" y1=\"" + n(y) + "\" x2=\"" +
           n(kLeft + static_cast<int>(shown_.size()) * (kBoxWidth + kGapX) - kGapX) + "\" y2=\"" +
           n(y) + "\" stroke=\"#cccccc\"/>\n" +
           text(12, y + 4, s == kHost ? "host" : "stream " + std::to_string(s), "#444444", "start");
  }

  std::string box(uint32_t node) const {
    const bool is_marked = std::ranges::find(marked_, node) != marked_.end();
    const Command& c = command(node);
    std::string label = shortened((*program_.names)[c.name], 20);
    std::string out = "<rect x=\"" + n(x_of(node)) + "\" y=\"" + n(y_of(node)) + "\" width=\"" +
                      n(kBoxWidth) + "\" height=\"" + n(kBoxHeight) + "\" rx=\"4\" fill=\"" +
                      (is_marked ? "#ffe3e0" : "#eef2f7") + "\" stroke=\"" +
                      (is_marked ? "#c62828" : "#7b8794") + "\"/>\n";
    out += text(x_of(node) + kBoxWidth / 2, y_of(node) + 17, label, "#111111", "middle");
    return out + text(x_of(node) + kBoxWidth / 2, y_of(node) + 32, what(node), "#555555", "middle");
  }

  // What a marked op does, else its layer.
  std::string what(uint32_t node) const {
    for (const FindingSide* side : {&finding_.first, &finding_.second})
      if (!side->op.empty() && side->command == graph_.commands[node])
        return std::string(to_text(side->access)) + " " + shortened(side->buffer, 16);
    return "layer " + std::to_string(command(node).layer);
  }

  std::string line(uint32_t from, uint32_t to, const char* style) const {
    const bool same = stream_of(from) == stream_of(to);
    const bool down = y_of(from) < y_of(to);
    const int x1 = same ? x_of(from) + kBoxWidth : x_of(from) + kBoxWidth / 2;
    const int y1 = same ? y_of(from) + kBoxHeight / 2 : y_of(from) + (down ? kBoxHeight : 0);
    const int x2 = same ? x_of(to) : x_of(to) + kBoxWidth / 2;
    const int y2 = same ? y_of(to) + kBoxHeight / 2 : y_of(to) + (down ? 0 : kBoxHeight);
    return "<line x1=\"" + n(x1) + "\" y1=\"" + n(y1) + "\" x2=\"" + n(x2) + "\" y2=\"" + n(y2) +
           "\" " + style + " marker-end=\"url(#arrow)\"/>\n";
  }

  std::string edge(uint32_t from, uint32_t to) const {
    return line(from, to, "stroke=\"#7b8794\" stroke-width=\"1.2\"");
  }

  std::string missing_edge() const {
    if (finding_.kind != FindingKind::race || marked_.size() != 2) return {};
    return line(marked_[0], marked_[1],
                "stroke=\"#c62828\" stroke-width=\"2\" stroke-dasharray=\"6 4\"");
  }

  const Program& program_;
  const OpGraph& graph_;
  const Finding& finding_;
  std::vector<uint32_t> marked_, shown_;
  std::vector<StreamId> streams_;
  std::map<uint32_t, int> place_;
};

}  // namespace

std::string finding_svg(const Program& program, const OpGraph& graph, const Finding& finding) {
  return Picture(program, graph, finding).run();
}

}  // namespace redecode
