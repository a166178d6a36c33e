// The part of headrace.yaml about programs that serve models, by commands or by files, and about the memory that they share.
import * as z from "zod";
import { maxModelIdLength } from "../domain/models/model-entry.ts";
import { upstreamDefaults, upstreamNamePattern } from "../domain/models/upstream.ts";
import { apiNames, upstreamApis, usualSpeech } from "../domain/models/upstream-speech.ts";
import { isByteSize, portMark, splitWords } from "./command-text.ts";
import { entry, field, list, mapping, oneOf, orLeftOut, printablePattern, said, trueOrFalse, whole } from "./field.ts";

const sizeText = "a size such as 6GB or 512MB, or whole bytes";
const sizeFix = "Give a size such as 6GB; 1 GB is a billion bytes, 1 GiB is 2^30.";

const size = (doc: string) =>
  field(z.union([z.int().min(0), z.string().refine(isByteSize)]), { doc, must: sizeText, fix: sizeFix });

const sizes = (doc: string) =>
  field(z.record(z.string().regex(/^\d{1,2}$/), size("Memory of this GPU.")), {
    ...mapping(doc),
    must: "a mapping from the index of a GPU to a size",
    fix: "Write a mapping such as { 0: 20GB }.",
  });

export const memory = field(
  z.strictObject({
    ram: size("RAM for all models together. Left out: 80 % of what the machine, or its container, has.").optional(),
    gpu: sizes("The same of each GPU. Left out: 95 % of what is free of it at the start.").optional(),
  }),
  mapping("The memory that the commands share."),
);

const commandMemory = field(
  z.strictObject({
    ram: size("RAM, of all processes of the command together.").default(0),
    gpu: sizes("Memory of each GPU that it uses. Left out: none.").optional(),
  }),
  mapping("What it needs. Left out: measured, and until then as large as the model file on its command line suggests."),
);

/** Variables of a program that is started. */
export const variables = (doc: string) =>
  field(
    z.record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
      field(z.string(), {
        doc: "A variable.",
        must: "a text",
        fix: "Quote it where it looks like a number or a switch.",
        quiet: true,
      }),
    ),
    mapping(doc),
  );

const flag = (doc: string) => said(doc, trueOrFalse()).default(false);

const command = field(
  z.strictObject({
    name: field(z.string().regex(upstreamNamePattern), {
      doc: "Name for logs, commands and the deployments of models.",
      must: "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
      fix: "Give a name such as qwen3.",
    }),
    command: field(
      z.union([
        z.string().refine((text) => namesPort(splitWords(text) ?? [])),
        z.array(z.string().min(1)).min(1).refine(namesPort),
      ]),
      {
        doc: `Program and arguments, as a line or a list, with \`${portMark}\` where the port of its server belongs. No shell reads it.`,
        must: `a command line, or a list of its words, with ${portMark} in it and its quotes closed`,
        fix: `Write a line such as llama-server -m model.gguf --port ${portMark}.`,
        quiet: true,
      },
    ),
    models: field(
      z
        .array(
          field(z.string().max(maxModelIdLength).regex(printablePattern), {
            doc: "Id of a model, as the server takes it.",
            must: "a model id of 1 to 256 printable ASCII characters without spaces",
            fix: "Give an id such as qwen3-8b.",
          }),
        )
        .min(1),
      list(
        "The models that it serves. An entry of `models` with the same id adds capabilities, context, prices and aliases.",
        "model ids, with one entry at least",
        "Write a list such as [qwen3-8b].",
      ),
    ),
    env: variables(
      "Variables that it gets on top of PATH, HOME and the like; nothing else of the server's environment is given to it.",
    ).optional(),
    directory: field(z.string().min(1), {
      doc: "Directory to start it in. Left out: that of the server.",
      must: "the path of a directory",
      fix: "Give a path; a relative one starts from the directory of the file.",
    }).optional(),
    path: field(z.string().regex(/^(\/[\w.~-]+)*$/), {
      doc: "Path of its API, to which `/chat/completions` and the like are appended.",
      must: "a path without a slash at its end",
      fix: "Give a path such as /v1.",
    }).default("/v1"),
    api: said("The API that it speaks, as of an upstream.", oneOf(upstreamApis)).default(usualSpeech.api),
    apis: field(
      z.array(said("A format of conversations.", oneOf(apiNames))).min(1),
      list(
        "The formats of conversations that it has, as of an upstream. Left out: it is asked what it has.",
        "chat, responses and messages, with one entry at least",
        "Write a list such as [chat, responses], or leave it out.",
      ),
    ).optional(),
    ready_path: field(z.string().regex(/^\/[!-~]*$/), {
      doc: "Path that answers 200 once it can take requests. Left out: `/health`, or its list of models where it has no `/health`.",
      must: "a path that begins with a slash",
      fix: "Give a path such as /health, or leave it out.",
    }).optional(),
    ready_seconds: said("Longest time from its start until it is ready.", whole([1, 86_400], 600, "seconds")).default(
      600,
    ),
    memory: commandMemory.optional(),
    keep_seconds: field(z.union([z.int().min(1).max(31_536_000), z.null()]), {
      doc: "How long it stays idle before it is stopped; null: until its memory is needed.",
      must: "a whole number of seconds from 1 to 31536000, or null",
      fix: "Give a number such as 600, or null.",
    }).default(600),
    preload: flag("Start it with the server, and not with its first request."),
    pinned: flag("Start it with the server, and never stop it for others."),
    group: field(z.string().regex(upstreamNamePattern), {
      doc: "Of the commands of one group only one runs at a time.",
      must: "a name of lower-case letters, digits, dots, underscores or hyphens",
      fix: "Give the members the same name, such as large.",
    }).optional(),
    parallel: said(
      "Most requests at once; more wait in the queue. Left out: measured.",
      orLeftOut(whole([1, 100_000], 8)),
    ).optional(),
    asleep_gpu: sizes(
      "For vLLM with `--enable-sleep-mode` and VLLM_SERVER_DEV_MODE=1: what it holds of each GPU while it sleeps. It then sleeps, at level 1, in place of being stopped, where that makes room; its weights are in RAM meanwhile, which belongs into `memory.ram`.",
    ).optional(),
    timeout_seconds: said(
      "How long to wait for the first byte of an answer.",
      whole([1, 86_400], 600, "seconds"),
    ).default(upstreamDefaults.timeoutSeconds),
    idle_seconds: said("How long a begun answer may be silent.", whole([1, 86_400], 900, "seconds")).default(
      upstreamDefaults.idleSeconds,
    ),
  }),
  entry("A command that serves models; it is started for requests.", "name, command and models"),
);

export const commands = field(z.array(command), list("Commands that serve models.", "commands"));

const modelId = (doc: string, fix: string) =>
  field(z.string().min(1).max(maxModelIdLength).regex(printablePattern), { doc, must: "the id of a model", fix });

const file = field(
  z.strictObject({
    model: modelId(
      "Id of the model, as the built-in engine would serve it: one that was pulled, or of a file of `engine.models`.",
      "Give an id as `headrace list` shows it, such as qwen3-vl-4b-q4_k_m.",
    ),
    engine: said("The program that runs it, found on the PATH.", oneOf(["llama-server"])),
    projector: field(z.string().min(1), {
      doc: "File by which it reads images and audio (mmproj). Left out: it reads text.",
      must: "the path of a GGUF file",
      fix: "Give a path; a relative one starts from the directory of the file.",
    }).optional(),
    draft: modelId(
      "Id of a small model of the same vocabulary that guesses ahead (speculative decoding). Left out: none.",
      "Give the id of another model of the built-in engine.",
    ).optional(),
    arguments: field(
      z.string().refine((text) => splitWords(text) !== undefined),
      {
        doc: "Further arguments for the program. No shell reads them.",
        must: "arguments in a line, with their quotes closed",
        fix: "Write a line such as --flash-attn on --cache-type-k q8_0.",
      },
    ).optional(),
  }),
  entry("A model file that another program runs.", "model and engine"),
);

export const files = field(
  z.array(file),
  list("Model files that another program than the built-in engine runs.", "files"),
);

function namesPort(words: readonly string[]): boolean {
  return words.some((word) => word.includes(portMark));
}
