// Requests of the OpenAI endpoints: what is read, what is refused, and with which words.
#include "recorder/http/openai.h"

#include <catch2/catch_test_macros.hpp>

#include "traces/error.h"

namespace redecode {
namespace {

CompletionRequest completion(const std::string& body) {
  return parse_completion_request(body, false);
}
CompletionRequest chat(const std::string& body) { return parse_completion_request(body, true); }

struct Bad {
  bool chat;
  std::string body;
  ErrorCode code;
  std::string context;  // of usage and limit errors
};

// The error of a body, or "served".
std::string outcome(const Bad& bad, const RequestLimits& limits = {}) {
  try {
    parse_completion_request(bad.body, bad.chat, limits);
    return "served";
  } catch (const Error& e) {
    std::string out(error_name(e.code()));
    if (e.code() != ErrorCode::corrupt) out += " " + e.context();
    return out;
  }
}

std::string with_prompt(const std::string& member) { return R"({"prompt":"p",)" + member + "}"; }
std::string with_message(const std::string& member) {
  return R"({"messages":[{"role":"user","content":"x"}],)" + member + "}";
}

std::vector<Bad> not_json() {
  std::vector<Bad> out;
  for (const char* body : {"",
                           " ",
                           "{",
                           "}",
                           "[",
                           "nul",
                           "tru",
                           "{\"prompt\"}",
                           "{\"prompt\":}",
                           "{\"prompt\":\"a\"",
                           "{\"prompt\":\"a\",}",
                           "{'prompt':'a'}",
                           "{\"prompt\":\"a\"}x",
                           "{\"prompt\":\"a\"}{}",
                           "{\"prompt\":\"\\q\"}",
                           "{\"prompt\":\"\\u12\"}",
                           "{\"prompt\":\"a",
                           "{prompt:1}",
                           "{\"n\":1e}",
                           "{\"n\":--1}",
                           "{\"n\":0x10}",
                           "{\"n\":}",
                           "{\"a\":[1,]}",
                           "{\"a\":[1 2]}",
                           "\x01",
                           "{\"prompt\":\"\xff\"}",
                           "{\"prompt\":\"\xc0\x80\"}",
                           "{\"prompt\":\"\xed\xa0\x80\"}",
                           "{\"prompt\":\"\xe2\x82\"}"})
    out.push_back({false, body, ErrorCode::corrupt, ""});
  return out;
}

std::vector<Bad> bad_prompts() {
  const auto usage = ErrorCode::usage;
  return {
      {false, "[]", usage, ""},
      {false, "1", usage, ""},
      {false, "null", usage, ""},
      {false, "\"x\"", usage, ""},
      {false, "{}", usage, "prompt"},
      {false, R"({"prompt":null})", usage, "prompt"},
      {false, R"({"prompt":1})", usage, "prompt"},
      {false, R"({"prompt":{}})", usage, "prompt"},
      {false, R"({"prompt":[]})", usage, "prompt"},
      {false, R"({"prompt":[[]]})", usage, "prompt"},
      {false, R"({"prompt":["a",1]})", usage, "prompt"},
      {false, R"({"prompt":[1,"a"]})", usage, "prompt"},
      {false, R"({"prompt":["a",[1]]})", usage, "prompt"},
      {false, R"({"prompt":[[1],"a"]})", usage, "prompt"},
      {false, R"({"prompt":[1.5]})", usage, "prompt"},
      {false, R"({"prompt":[-1]})", usage, "prompt"},
      {false, R"({"prompt":[3000000000]})", usage, "prompt"},
      {false, R"({"prompt":[true]})", usage, "prompt"},
  };
}

std::vector<Bad> bad_fields() {
  const auto usage = ErrorCode::usage;
  return {
      {false, with_prompt(R"("model":1)"), usage, "model"},
      {false, with_prompt(R"("n":0)"), usage, "n"},
      {false, with_prompt(R"("n":-1)"), usage, "n"},
      {false, with_prompt(R"("n":1.5)"), usage, "n"},
      {false, with_prompt(R"("n":"2")"), usage, "n"},
      {false, with_prompt(R"("n":1e300)"), usage, "n"},
      {false, with_prompt(R"("n":129)"), ErrorCode::limit, "n"},
      {false, with_prompt(R"("max_tokens":0)"), usage, "max_tokens"},
      {false, with_prompt(R"("max_tokens":"9")"), usage, "max_tokens"},
      {false, with_prompt(R"("max_tokens":4294967296)"), usage, "max_tokens"},
      {false, with_prompt(R"("temperature":-0.1)"), usage, "temperature"},
      {false, with_prompt(R"("temperature":2.1)"), usage, "temperature"},
      {false, with_prompt(R"("temperature":"hot")"), usage, "temperature"},
      {false, with_prompt(R"("top_p":0)"), usage, "top_p"},
      {false, with_prompt(R"("top_p":1.01)"), usage, "top_p"},
      {false, with_prompt(R"("min_p":1)"), usage, "min_p"},
      {false, with_prompt(R"("top_k":-2)"), usage, "top_k"},
      {false, with_prompt(R"("top_k":2.5)"), usage, "top_k"},
      {false, with_prompt(R"("seed":0.5)"), usage, "seed"},
      {false, with_prompt(R"("seed":1e17)"), usage, "seed"},
      {false, with_prompt(R"("seed":"7")"), usage, "seed"},
      {false, with_prompt(R"("stream":1)"), usage, "stream"},
      {false, with_prompt(R"("stream":"true")"), usage, "stream"},
      {false, with_prompt(R"("stream_options":{"include_usage":true})"), usage, "stream_options"},
      {false, with_prompt(R"("stream":true,"stream_options":1)"), usage, "stream_options"},
      {false, with_prompt(R"("stream":true,"stream_options":{"include_usage":1})"), usage,
       "stream_options.include_usage"},
      {false, with_prompt(R"("stop":1)"), usage, "stop"},
      {false, with_prompt(R"("stop":"")"), usage, "stop"},
      {false, with_prompt(R"("stop":["a",1])"), usage, "stop"},
      {false, with_prompt(R"("stop":["a",""])"), usage, "stop"},
      {false, with_prompt("\"stop\":\"" + std::string(1025, 'a') + "\""), ErrorCode::limit, "stop"},
      {false,
       with_prompt(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f",)"
                   R"("g","h"])"),
       ErrorCode::limit, "stop"},
      {false, with_prompt(R"("logprobs":21)"), usage, "logprobs"},
      {false, with_prompt(R"("logprobs":-1)"), usage, "logprobs"},
      {false, with_prompt(R"("logprobs":true)"), usage, "logprobs"},
      {false, with_prompt(R"("echo":1)"), usage, "echo"},
      {false, with_prompt(R"("echo":true,"logprobs":1)"), usage, "echo"},
      {false, with_prompt(R"("best_of":2)"), usage, "best_of"},
      {false, with_prompt(R"("suffix":"s")"), usage, "suffix"},
      {false, with_prompt(R"("ignore_eos":"no")"), usage, "ignore_eos"},
      {false, with_prompt(R"("presence_penalty":0.1)"), usage, "presence_penalty"},
      {false, with_prompt(R"("frequency_penalty":-1)"), usage, "frequency_penalty"},
      {false, with_prompt(R"("repetition_penalty":1.1)"), usage, "repetition_penalty"},
      {false, with_prompt(R"("logit_bias":{"5":1})"), usage, "logit_bias"},
      {false, with_prompt(R"("min_tokens":1)"), usage, "min_tokens"},
      {false, with_prompt(R"("stop_token_ids":[1])"), usage, "stop_token_ids"},
  };
}

std::vector<Bad> bad_chats() {
  const auto usage = ErrorCode::usage;
  const auto message = [](const std::string& text) { return R"({"messages":[)" + text + "]}"; };
  return {
      {true, "{}", usage, "messages"},
      {true, R"({"messages":"hi"})", usage, "messages"},
      {true, R"({"messages":[]})", usage, "messages"},
      {true, message("1"), usage, "messages"},
      {true, message("{}"), usage, "messages.role"},
      {true, message(R"({"role":"king","content":"x"})"), usage, "messages.role"},
      {true, message(R"({"role":1,"content":"x"})"), usage, "messages.role"},
      {true, message(R"({"role":"user"})"), usage, "messages.content"},
      {true, message(R"({"role":"user","content":1})"), usage, "messages.content"},
      {true, message(R"({"role":"user","content":[1]})"), usage, "messages.content"},
      {true, message(R"({"role":"user","content":[{"type":"image_url"}]})"), usage,
       "messages.content.type"},
      {true, message(R"({"role":"user","content":[{"type":"text","text":1}]})"), usage,
       "messages.content.text"},
      {true, message(R"({"role":"assistant","content":"","tool_calls":[{}]})"), usage,
       "messages.tool_calls"},
      {true, with_message(R"("logprobs":1)"), usage, "logprobs"},
      {true, with_message(R"("top_logprobs":1)"), usage, "top_logprobs"},
      {true, with_message(R"("logprobs":true,"top_logprobs":21)"), usage, "top_logprobs"},
      {true, with_message(R"("max_completion_tokens":0)"), usage, "max_completion_tokens"},
      {true, with_message(R"("tools":[{}])"), usage, "tools"},
      {true, with_message(R"("tool_choice":"required")"), usage, "tool_choice"},
      {true, with_message(R"("response_format":{"type":"json_object"})"), usage, "response_format"},
      {true, with_message(R"("response_format":1)"), usage, "response_format"},
      {true, with_message(R"("audio":{"voice":"x"})"), usage, "audio"},
  };
}

}  // namespace

TEST_CASE("OpenAI bodies: over a hundred bad ones are refused, each by its field") {
  size_t count = 0;
  for (const auto& list : {not_json(), bad_prompts(), bad_fields(), bad_chats()})
    for (const Bad& bad : list) {
      INFO(bad.body);
      std::string wanted(error_name(bad.code));
      if (bad.code != ErrorCode::corrupt) wanted += " " + bad.context;
      CHECK(outcome(bad) == wanted);
      ++count;
    }
  CHECK(count >= 110);
}

TEST_CASE("OpenAI bodies: limits hold before anything is made of a body") {
  RequestLimits limits;
  limits.body_bytes = 100;
  limits.nesting = 4;
  limits.prompts = 2;
  CHECK(outcome({false, R"({"prompt":")" + std::string(100, 'a') + "\"}", {}, ""}, limits) ==
        "limit ");
  CHECK(outcome({false, R"({"prompt":"a","x":[[[[1]]]]})", {}, ""}, limits) == "limit byte 21");
  CHECK(outcome({false, R"({"prompt":"a","x":"[[[[[[["})", {}, ""}, limits) == "served");
  CHECK(outcome({false, R"({"prompt":["a","b","c"]})", {}, ""}, limits) == "limit prompt");
  std::string many = R"({"prompt":[0)";
  for (int i = 0; i < 300000; ++i) many += ",0";
  CHECK(outcome({false, many + "]}", {}, ""}).starts_with("limit byte "));
  CHECK(outcome({false, std::string(100000, '['), {}, ""}) == "limit byte 32");
}

TEST_CASE("OpenAI completions: defaults and every field") {
  const CompletionRequest plain = completion(R"({"prompt":"hi","unknown":{"a":[1]},"user":"u"})");
  CHECK(plain.prompts == std::vector<std::string>{"hi"});
  CHECK(plain.prompt_json == "\"hi\"");
  CHECK_FALSE(plain.chat);
  CHECK(plain.max_tokens == 0);
  CHECK(plain.n == 1);
  CHECK(plain.sampling.temperature == 1.0f);
  CHECK(plain.sampling.top_p == 1.0f);
  CHECK_FALSE(plain.has_seed);
  CHECK(plain.logprobs == -1);

  const CompletionRequest full = completion(
      R"({"model":"m","prompt":["a","b"],"max_tokens":7,"n":3,"temperature":0.5,"top_p":0.25,)"
      R"("top_k":-1,"min_p":0.125,"seed":-2,"stop":["x","y"],"stream":true,)"
      R"("stream_options":{"include_usage":true},"logprobs":4,"ignore_eos":true,"best_of":3,)"
      R"("presence_penalty":0,"logit_bias":null,"suffix":null})");
  CHECK(full.model == "m");
  CHECK(full.prompts == std::vector<std::string>{"a", "b"});
  CHECK(full.max_tokens == 7);
  CHECK(full.n == 3);
  CHECK(full.sampling.temperature == 0.5f);
  CHECK(full.sampling.top_p == 0.25f);
  CHECK(full.sampling.top_k == 0);
  CHECK(full.sampling.min_p == 0.125f);
  CHECK(full.has_seed);
  CHECK(full.sampling.seed == static_cast<uint64_t>(-2));
  CHECK(full.stop == std::vector<std::string>{"x", "y"});
  CHECK(full.stream);
  CHECK(full.include_usage);
  CHECK(full.logprobs == 4);
  CHECK(full.ignore_eos);

  CHECK(completion(R"({"prompt":[1,2]})").token_prompts ==
        std::vector<std::vector<int32_t>>{{1, 2}});
  CHECK(completion(R"({"prompt":[[1],[2,3]]})").token_prompts ==
        std::vector<std::vector<int32_t>>{{1}, {2, 3}});
  CHECK(completion(R"({"prompt":"a","stop":"s","echo":true})").stop ==
        std::vector<std::string>{"s"});
  CHECK(completion(R"({"prompt":"\ud83d\ude00\ud83d\u0000"})").prompts[0] ==
        std::string("\xF0\x9F\x98\x80\xEF\xBF\xBD\0", 8));
  CHECK(completion(R"({"prompt":"a","prompt":"b"})").prompts == std::vector<std::string>{"b"});
}

TEST_CASE("OpenAI chat: messages, parts and the newer token limit") {
  const CompletionRequest request =
      chat(R"({"messages":[{"role":"developer","content":"be"},{"role":"user","content":[)"
           R"({"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
           R"({"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"t"}],)"
           R"("max_completion_tokens":5,"max_tokens":9,"logprobs":true,"top_logprobs":3,)"
           R"("tools":[],"tool_choice":"auto","response_format":{"type":"text"}})");
  CHECK(
      request.messages ==
      std::vector<ChatMessage>{{"system", "be"}, {"user", "ab"}, {"assistant", ""}, {"tool", "t"}});
  CHECK(request.max_tokens == 5);
  CHECK(request.logprobs == 3);
  CHECK(request.prompt_json.starts_with(R"([{"role":"developer","content":"be"})"));
  CHECK(chat(with_message(R"("logprobs":true)")).logprobs == 0);
  CHECK(chat(with_message(R"("logprobs":false)")).logprobs == -1);
}

}  // namespace redecode
