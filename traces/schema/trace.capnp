# traces/schema/trace.capnp - records of a trace file (.rdt): a header, then steps with their
# outputs.
#
# A whole file decodes with stock tools, our code not needed:
#
#   zstd -dc FILE.rdt | capnp convert binary:text traces/schema/trace.capnp TraceRecord
#
# Aliases and evolution rules: common.capnp.

@0x80aadd33951a55f5;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("redecode::schema");

using Common = import "common.capnp";

struct TraceRecord {
  # One message of the file. The first must be a header and is the only one; an end must be the
  # last.
  union {
    header @0 :TraceHeader;
    step @1 :Step;
    output @2 :Common.StepOutput;  # follows its step, not necessarily at once
    end @3 :Common.End;
  }
}

struct TraceHeader {
  writer @0 :Text;                 # "redecode 0.1.0"
  model @1 :Common.ModelIdentity;
  engine @2 :Common.EngineSettings;
  mode @3 :Common.Mode;            # under which the trace was recorded
  workload @4 :Text;               # for people
  environment @5 :List(Text);      # "REDECODE_STREAMS=single"; must ascend
}

enum Phase {
  prefill @0;
  decode @1;
  mixed @2;
}

struct Step {
  # One engine iteration as it was scheduled. Within it departures come first, then arrivals, then
  # page changes, then the rows.
  index @0 :UInt64;                     # StepIndex; must be one more than the step before
  phase @1 :Phase;
  bucket @2 :UInt32;                    # rows after padding; 0: no bucket, the batch runs unpadded
  departures @3 :List(Departure);
  arrivals @4 :List(Arrival);
  pageChanges @5 :List(PageChange);

  # Rows, one column a property. A column that says nothing new is left out, which is what makes a
  # step of 64 rows cost about as much as its 64 tokens. All prediction starts anew with every
  # chunk.
  rowCount @6 :UInt32;
  requests @7 :List(UInt32);
  # RequestId of each row. Left out: the same, in the same order, as in the last step of this
  # phase in this chunk, without the requests that departed since, this step's departures included.
  positions @8 :List(UInt32);
  # Position minus the expected position, modulo 2^32. Expected: one after the request's last row in
  # this chunk; before its first row, cachedTokens of its arrival if that is in this chunk, else 0.
  # Left out: all 0.
  tokens @9 :List(UInt16);
  # Low 16 bits of each Token.
  tokensHigh @10 :List(UInt16);
  # High 16 bits of each Token. Left out: all 0.
  slots @11 :List(UInt32);
  # Slot minus the expected slot, modulo 2^32. Expected: page * pageSize + position % pageSize,
  # where page is the request's entry position / pageSize as the page changes and earlier rows
  # (slot / pageSize) of this chunk tell it since its last departure; 0 if they do not tell or
  # pageSize is 0. Left out: all 0.
  wantsOutput @12 :List(Bool);
  # Whether logits are computed and a token is sampled. Left out: all rows do.
}

enum DepartureReason {
  finished @0;
  preempted @1;
  cancelled @2;
  failed @3;
}

struct Departure {
  request @0 :UInt32;  # RequestId; must be running
  reason @1 :DepartureReason;
}

struct Arrival {
  request @0 :UInt32;       # RequestId; must not be running
  session @1 :UInt32;
  round @2 :UInt32;         # 0-based place of the request in its session
  promptTokens @3 :UInt32;  # tokens
  cachedTokens @4 :UInt32;  # of those, found in the prefix cache: their rows never appear
  maxTokens @5 :UInt32;     # output tokens asked for
  resumed @6 :Bool;         # back after a preemption; promptTokens then counts its output too
  temperature @7 :Float32;  # 0: argmax, the rest is ignored
  topK @8 :Int32;           # 0 keeps all
  topP @9 :Float32;         # (0, 1]
  minP @10 :Float32;        # [0, 1), share of the largest probability
  seed @11 :UInt64;
}

struct PageChange {
  # Entry `index` of the request's page table becomes `page`.
  request @0 :UInt32;  # RequestId; must be running
  index @1 :UInt32;
  page @2 :UInt32;     # PageId; must not be 0
  shared @3 :Bool;     # the page already holds these tokens: a prefix hit
}
