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
    block @4 :StepBlock;           # since 1.1, as all below
    keyframe @5 :Keyframe;         # the first record of every data chunk
    event @6 :Event;
    gap @7 :Gap;
    exchange @8 :Exchange;
    schema @9 :Common.FileSchema;  # the only record of the schema chunk
    index @10 :Common.FileIndex;   # the only record of the index chunk
  }
}

struct TraceHeader {
  writer @0 :Text;                 # "redecode 0.1.0"
  model @1 :Common.ModelIdentity;
  engine @2 :Common.EngineSettings;
  mode @3 :Common.Mode;            # under which the trace was recorded
  workload @4 :Text;               # for people
  environment @5 :List(Text);      # "REDECODE_STREAMS=single"; must ascend
  sampling @6 :Text;               # what was recorded, for people; empty: all
  startedUnixUs @7 :Int64;         # wall clock where timeUs is 0; 0: not known
  redaction @8 :Text;              # none | lengths | hashes | encrypted; empty: none
  redactionSalt @9 :Data;
  set @10 :Text;                   # id of the set's first file, hex; empty: not of a set
  setNumber @11 :UInt32;
  setPrevious @12 :UInt64;         # Digest of the last chunk of the file before; 0 in the first
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
  timeUs @13 :UInt64;        # since the recording began; 0: not known
  rowsLeftOut @14 :UInt32;   # rows of the batch that sampling or redaction left out
  packedTokens @15 :Data;
  # Tokens of 3 bytes each, little-endian, in place of `tokens` and `tokensHigh`
}

struct Keyframe {
  # Which requests run before the chunk's first step, and where each is. What is expected of rows
  # starts from here.
  nextStep @0 :UInt64;
  running @1 :List(Arrival);       # request must ascend
  nextPositions @2 :List(UInt32);  # Position of the next row of each
  pageCounts @3 :List(UInt32);     # entries of the page table of each
  pages @4 :List(UInt32);
  # All page tables end to end, each entry minus one more than the entry before it (the first of a
  # table: minus 0), modulo 2^32. Page 0: not known.
  incomplete @5 :List(UInt32);     # RequestIds of which steps are missing; must ascend
  preempted @6 :List(UInt32);      # RequestIds that may be resumed; must ascend
}

struct StepBlock {
  # Consecutive steps as columns. What is expected is as in Step, from the chunk's keyframe on.
  first @0 :UInt64;                # StepIndex of the first; each is one more than the one before
  count @1 :UInt32;                # steps
  phases @2 :List(UInt8);          # Phase of each. Left out: all decode
  buckets @3 :List(UInt32);        # minus the step before's, modulo 2^32. Left out: all 0
  rowCounts @4 :List(UInt32);      # the same of the rows
  times @5 :List(UInt64);          # timeUs minus the step before's, modulo 2^64. Left out: all 0
  rowsLeftOut @6 :List(UInt32);    # Left out: all 0
  # Ordinals are steps from the block's first.
  departureSteps @7 :List(UInt32);
  departures @8 :List(Departure);
  arrivalSteps @9 :List(UInt32);
  arrivals @10 :List(Arrival);
  pageSteps @11 :List(UInt32);     # ordinal minus that of the change before
  pageRequests @12 :List(UInt32);  # minus that of the change before, modulo 2^32
  pageIndexes @13 :List(UInt32);
  # Index minus the entries that the request's table has, modulo 2^32. Left out: all 0
  pagePages @14 :List(UInt32);     # minus that of the change before, modulo 2^32
  pageShared @15 :List(Bool);      # Left out: none
  requestSteps @16 :List(UInt32);
  # Ordinals of the steps whose requests are not the expected ones (Step.requests)
  requests @17 :List(UInt32);
  # The requests of the rows of those steps, end to end, minus the row before's, modulo 2^32
  exceptionRows @18 :List(UInt32);
  # Rows, numbered through the block, whose position or slot is not the expected one, minus the
  # one before
  exceptionPositions @19 :List(UInt32);  # their Position minus the expected one, modulo 2^32
  exceptionSlots @20 :List(UInt32);      # their Slot minus the expected one, modulo 2^32
  wantsOutput @21 :List(Bool);     # of all rows. Left out: all do
  tokenBytes @22 :UInt8;           # 1 to 4: bytes a token
  tokens @23 :Data;
  # Tokens, little-endian, by request: all rows of the first request that has a row in the block,
  # in order, then those of the next one.
}

struct Event {
  beforeStep @0 :UInt64;
  timeUs @1 :UInt64;
  kind @2 :UInt16;     # traces/event.h, EventKind
  request @3 :UInt32;  # 0xffffffff: none
  a @4 :UInt32;
  b @5 :UInt32;
  text @6 :Text;
}

struct Gap {
  # Steps that were run and are not here.
  first @0 :UInt64;
  last @1 :UInt64;
  count @2 :UInt64;
  bytes @3 :UInt64;   # of records that went with them; 0: not known
  causes @4 :UInt32;  # traces/event.h, GapCause
}

struct Exchange {
  # One request to a server and its answer, as seen from outside: traces/exchange.h.
  number @0 :UInt64;
  startUs @1 :UInt64;
  firstUs @2 :UInt64;
  endUs @3 :UInt64;
  path @4 :Text;
  model @5 :Text;
  status @6 :UInt32;
  streamed @7 :Bool;
  end @8 :Text;        # complete | client_gone | upstream_gone | not_sent
  session @9 :UInt32;
  round @10 :UInt32;
  prompt @11 :Text;
  promptBytes @12 :UInt64;
  promptTokens @13 :UInt32;
  outputTokens @14 :UInt32;
  blockHashes @15 :List(UInt64);
  maxTokens @16 :UInt32;
  choiceCount @17 :UInt32;
  temperature @18 :Float32;
  topK @19 :Int32;
  topP @20 :Float32;
  minP @21 :Float32;
  seed @22 :UInt64;
  hasSeed @23 :Bool;
  stop @24 :List(Text);
  choices @25 :List(Choice);
  chunkUs @26 :List(UInt64);  # minus the one before's

  struct Choice {
    text @0 :Text;
    textBytes @1 :UInt64;
    finishReason @2 :Text;
  }
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
