// The replies of the recording's model server, in no particular format.

export interface ReplyCall {
  id: string;
  name: string;
  input: string;
}

export interface Reply {
  reasoning?: string;
  /** The text, in the pieces of a stream. */
  pieces: readonly string[];
  refusal?: string;
  calls?: readonly ReplyCall[];
  end: "stop" | "length" | "filter";
  /** The stop text that ended the reply. */
  stoppedBy?: string;
  /** Undefined: the server reports no usage. */
  usage: ReplyUsage | undefined;
}

export interface ReplyUsage {
  prompt: number;
  completion: number;
  cached?: number;
  cacheWrite?: number;
  reasoning?: number;
}

const usage: ReplyUsage = { prompt: 70, completion: 20 };
const plain: Reply = { pieces: ["Hello", " from", " 東京, ", "Grüße"], end: "stop", usage };
const call: ReplyCall = { id: "call_1", name: "get_weather", input: '{"city":"Oslo","days":2}' };

/** Replies by the name of the upstream's model. */
export const replies: Readonly<Record<string, Reply>> = {
  plain,
  empty: { ...plain, pieces: [], usage: { prompt: 70, completion: 0 } },
  length: { ...plain, end: "length" },
  filter: { ...plain, end: "filter" },
  stopped: { ...plain, stoppedBy: "END" },
  refusal: { ...plain, pieces: [], refusal: "I would rather not." },
  reasoning: {
    ...plain,
    reasoning: "First the weather, then the rest.",
    usage: { prompt: 70, completion: 60, reasoning: 40 },
  },
  call: { ...plain, pieces: [], calls: [call] },
  calls: {
    ...plain,
    calls: [call, { id: "call_2", name: "get_time", input: "{}" }],
    usage: { prompt: 90, completion: 44 },
  },
  thoughtful: { ...plain, reasoning: "A tool is needed.", pieces: [], calls: [call] },
  json: { ...plain, pieces: ['{"city":', '"Oslo",', '"degrees":4}'] },
  verdict: { ...plain, pieces: ['{"pass": true,', ' "reason": "ok"}'] },
  cached: { ...plain, usage: { prompt: 2000, completion: 20, cached: 1500, cacheWrite: 300 } },
  uncounted: { ...plain, usage: undefined },
  spelt: { ...plain, pieces: ['A "quoted" \\ word\n', "\ttab \u2028 \ud83d\ude80", " </script>"] },
  secret: { ...plain, pieces: ["Write to jo@exa", "mple.com", " about tulips."] },
};

export function replyOf(model: unknown): Reply {
  return replies[String(model)] ?? plain;
}
