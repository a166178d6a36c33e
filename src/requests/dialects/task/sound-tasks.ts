// The tasks for sound: a model speaks a text, or converts speech to text.
import {
  speechEvent,
  speechRequest,
  transcription as transcriptionAnswer,
  transcriptionEvent,
  transcriptionRequest,
  translationRequest,
} from "../../../wire/tasks/media.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { countOf, detailsOf } from "../reported-parts.ts";
import { usageOf } from "../response/reply-reader.ts";
import { type Json, jsonTask, type Task } from "./task.ts";

export const speech: Task = {
  ...jsonTask,
  operation: "speech",
  endpoint: "speech",
  capability: "speech",
  paths: ["/v1/audio/speech"],
  doc: {
    operationId: "createSpeech",
    summary: "Speak a text",
    description:
      "The sound comes as it is made. It is counted in characters, and in tokens where the server tells them.",
    example: { model: "speaker", input: "The mill runs by itself.", voice: "alloy" },
    answerDescription: "The sound; events with `stream_format: sse`.",
  },
  schema: speechRequest,
  answer: speechEvent,
  events: {
    shape: speechEvent,
    isAsked: ({ stream_format: format }) => format === "sse",
    last: "speech.audio.done",
    delivered: { "speech.audio.delta": "audio" },
    ofWhole: () => [],
  },
  answersBytes: () => true,
  promptMember: "input",
  shownMembers: ["input", "instructions"],
  repeated: [],
  readings: () => 1,
  answerTokens: () => undefined,
  units: ({ input }) => ({ characters: charactersOf(input) }),
  answerMembers: {},
  usage: ({ usage }) => usageOf(usage, {}),
};

const textFormats: ReadonlySet<unknown> = new Set(["text", "srt", "vtt"]);
const listening = {
  ...jsonTask,
  capability: "transcription",
  answer: transcriptionAnswer,
  form: { files: ["file"], orJson: false },
  answersBytes: ({ response_format: format }) => textFormats.has(format),
  answersText: true,
  promptMember: "prompt",
  shownMembers: ["prompt"],
  repeated: [],
  readings: () => 1,
  answerTokens: () => undefined,
  units: ({ file }) => ({ seconds: wholeSeconds((file as { seconds?: unknown } | undefined)?.seconds) ?? 1 }),
  answerMembers: { text: "text" },
  usage: heardUsage,
} as const satisfies Partial<Task>;

export const transcription: Task = {
  ...listening,
  operation: "transcription",
  endpoint: "transcriptions",
  paths: ["/v1/audio/transcriptions"],
  doc: {
    operationId: "createTranscription",
    summary: "Write down what is said",
    description:
      "A form; its fields may stand in any order. It is counted in tokens where the server tells them, else in seconds: those that it tells, or an estimate from the file.",
    answerDescription: "The text, in the format that is asked for; its events with `stream`.",
  },
  schema: transcriptionRequest,
  events: {
    shape: transcriptionEvent,
    isAsked: ({ stream }) => stream === true,
    last: "transcript.text.done",
    delivered: { "transcript.text.delta": "delta" },
    ofWhole({ text, usage }) {
      const done = { type: "transcript.text.done", text, ...(usage === undefined ? {} : { usage }) };
      return [{ type: "transcript.text.delta", delta: text }, done];
    },
    // The server vLLM streams a transcript as chunks of a chat completion.
    ofChunks: {
      delta: (delta) => ({ type: "transcript.text.delta", delta }),
      done(text, usage) {
        const tokens = usage && {
          ...{ type: "tokens", input_tokens: usage["prompt_tokens"], output_tokens: usage["completion_tokens"] },
          total_tokens: usage["total_tokens"],
        };
        return { type: "transcript.text.done", text, ...(tokens && { usage: tokens }) };
      },
    },
  },
};

export const translation: Task = {
  ...listening,
  operation: "translation",
  endpoint: "translations",
  paths: ["/v1/audio/translations"],
  doc: {
    operationId: "createTranslation",
    summary: "Write down in English what is said",
    description: "A form, counted as transcriptions are.",
    answerDescription: "The text, in the format that is asked for.",
  },
  schema: translationRequest,
};

/** Returns the number of code points, because half a surrogate pair is not a character. */
function charactersOf(text: unknown): number {
  if (typeof text !== "string") return 0;
  let characters = 0;
  for (const _ of text) characters++;
  return characters;
}

/**
 * Returns whole seconds, at least one, because vendors bill to the nearest second. Returns undefined for an invalid
 * figure.
 */
function wholeSeconds(seconds: unknown): number | undefined {
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds < 0) return undefined;
  return Math.min(Math.max(1, Math.round(seconds)), Number.MAX_SAFE_INTEGER);
}

/** Returns the reported usage. It has either tokens or seconds, never both. */
function heardUsage({ usage, duration }: Json): ReplyUsage | undefined {
  const reported = (typeof usage === "object" && usage !== null ? usage : {}) as Json;
  const input = (reported["input_token_details"] ?? reported["input_tokens_details"] ?? {}) as Json;
  const promptTokens = countOf(reported["input_tokens"]);
  if (promptTokens !== undefined) {
    const details = detailsOf({ inputAudioTokens: countOf(input["audio_tokens"]) });
    return {
      promptTokens,
      completionTokens: countOf(reported["output_tokens"]),
      details: { ...details, seconds: undefined },
    };
  }
  const seconds = wholeSeconds(reported["seconds"]) ?? wholeSeconds(duration);
  return seconds === undefined ? undefined : { promptTokens: 0, completionTokens: 0, details: { seconds } };
}
