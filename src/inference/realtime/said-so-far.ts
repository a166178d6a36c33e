// Estimates the tokens of a realtime session from its texts and audio length, for servers that report no usage.

import type { TokenUsage } from "../../domain/usage/usage.ts";
import { estimateTokens } from "../../requests/dialects/prompt-tokens.ts";
import { detailsOf, partsOf } from "../../requests/dialects/reported-parts.ts";
import { isJson, type Json, memberOf } from "./reported-usage.ts";

/**
 * Audio bytes per token. OpenAI counts a token for every 100 ms of user speech and for every 50 ms of model speech. The
 * audio is assumed to have 24 kHz and 16 bits.
 */
const [bytesOfHeardToken, bytesOfSpokenToken] = [4_800, 2_400];
/** Tokens that the chat template adds to each conversation item. */
const tokensOfItem = 4;

/** The output that a response has delivered so far. */
export interface Spoken {
  textBytes: number;
  /** Bytes of decoded audio. */
  audioBytes: number;
}

export class SaidSoFar {
  /** Tokens of the whole conversation. The server reports them, or they are estimated. */
  #tokens = 0;
  #instructions = 0;
  #audioBytes = 0;
  /** Audio bytes of the transcript in progress. `#writtenBytes` counts its text bytes. */
  #unwrittenBytes = 0;
  #writtenBytes = 0;

  /** Estimated prompt tokens of a response that begins now. */
  get promptTokens(): number {
    return this.#tokens + this.#instructions + Math.ceil(this.#audioBytes / bytesOfHeardToken);
  }

  /** Counts a client event that was sent to the server. */
  heard(event: Json): void {
    switch (event["type"]) {
      case "session.update":
        this.#instructions = textTokens(memberOf(event, "session")["instructions"]) ?? this.#instructions;
        break;
      case "input_audio_buffer.append":
        this.#audioBytes += bytesOfBase64(event["audio"]);
        this.#unwrittenBytes += bytesOfBase64(event["audio"]);
        break;
      case "input_audio_buffer.clear":
        this.#audioBytes = 0;
        this.#unwrittenBytes = 0;
        break;
      case "conversation.item.create":
        this.#tokens += tokensOfItem + tokensIn(memberOf(event, "item"));
        break;
    }
  }

  /** True if a transcript has begun and has not ended. */
  get isWriting(): boolean {
    return this.#writtenBytes > 0;
  }

  /** Counts a delivered piece of a transcript. */
  wrote(piece: unknown): void {
    if (typeof piece === "string") this.#writtenBytes += Buffer.byteLength(piece);
  }

  /** Ends a transcript and returns its estimated usage. `text` is its whole text, if known. */
  transcribed(text: unknown): TokenUsage {
    const heard = Math.ceil(this.#unwrittenBytes / bytesOfHeardToken);
    const written = typeof text === "string" ? Buffer.byteLength(text) : 0;
    const completionTokens = estimateTokens(Math.max(written, this.#writtenBytes));
    this.#unwrittenBytes = 0;
    this.#writtenBytes = 0;
    const parts = partsOf({ details: detailsOf({ inputAudioTokens: heard }) });
    return { promptTokens: heard, completionTokens, estimated: true, parts };
  }

  /** Ends a response. Its prompt and output are part of the prompt of the next response. */
  answered({ promptTokens, completionTokens, estimated }: TokenUsage): void {
    if (estimated) this.#tokens += completionTokens;
    else this.#tokens = Math.max(0, promptTokens + completionTokens - this.#instructions);
    this.#tokens += estimated ? Math.ceil(this.#audioBytes / bytesOfHeardToken) : 0;
    this.#audioBytes = 0;
  }
}

/** Returns the estimated tokens of a response's output. */
export function spokenTokens({ textBytes, audioBytes }: Spoken): { all: number; audio: number } {
  const audio = Math.ceil(audioBytes / bytesOfSpokenToken);
  return { all: estimateTokens(textBytes) + audio, audio };
}

/** Adds the text or audio of a server event to `spoken`. Returns false if the event has none. */
export function addSpoken(spoken: Spoken, { type, delta }: Json): boolean {
  if (typeof type !== "string" || typeof delta !== "string" || !type.startsWith("response.")) return false;
  if (audioDeltas.has(type)) spoken.audioBytes += bytesOfBase64(delta);
  else spoken.textBytes += Buffer.byteLength(delta);
  return true;
}

/** Names of the audio events, in the current API and in the preview API. */
const audioDeltas: ReadonlySet<string> = new Set(["response.output_audio.delta", "response.audio.delta"]);

function tokensIn(item: Json): number {
  const content = item["content"];
  const parts = Array.isArray(content) ? content.filter(isJson) : [];
  const ofParts = parts.reduce(
    (sum, { text, transcript, audio }) =>
      sum + (textTokens(text) ?? textTokens(transcript) ?? 0) + Math.ceil(bytesOfBase64(audio) / bytesOfHeardToken),
    0,
  );
  return ofParts + (textTokens(item["output"]) ?? 0) + (textTokens(item["arguments"]) ?? 0);
}

function textTokens(text: unknown): number | undefined {
  return typeof text === "string" ? estimateTokens(Buffer.byteLength(text)) : undefined;
}

function bytesOfBase64(text: unknown): number {
  return typeof text === "string" ? Math.floor((text.length * 3) / 4) : 0;
}
