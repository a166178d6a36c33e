// The keys `commands`, `files` and `memory` in the section `engine` of headrace.yaml. They describe the programs that
// the server starts to serve models, and the memory that these share.
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
    ram: size("RAM for all models together. Default: 80 % of the RAM of the machine or container.").optional(),
    gpu: sizes(
      "Memory of each GPU for all models together. Default: 95 % of the memory that is free when the server starts.",
    ).optional(),
  }),
  mapping("Memory that all commands share."),
);

const commandMemory = field(
  z.strictObject({
    ram: size("RAM of all processes of the command together.").default(0),
    gpu: sizes("Memory on each GPU that the command uses. Default: none.").optional(),
  }),
  mapping(
    "Memory that the command needs. Default: measured; until then estimated from the size of the model file on its command line.",
  ),
);

/** The environment variables of a program that the server starts. */
export const variables = (doc: string) =>
  field(
    z.record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
      field(z.string(), {
        doc: "A variable.",
        must: "a text",
        fix: "Quote a value that looks like a number or true or false.",
        quiet: true,
      }),
    ),
    mapping(doc),
  );

const flag = (doc: string) => said(doc, trueOrFalse()).default(false);

const command = field(
  z.strictObject({
    name: field(z.string().regex(upstreamNamePattern), {
      doc: "Name in logs, commands and the deployments of models.",
      must: "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
      fix: "Give a name such as qwen3.",
    }),
    command: field(
      z.union([
        z.string().refine((text) => namesPort(splitWords(text) ?? [])),
        z.array(z.string().min(1)).min(1).refine(namesPort),
      ]),
      {
        doc: `Program and arguments, as a line or a list, with \`${portMark}\` in place of the port. The line is not run by a shell.`,
        must: `a command line, or a list of its words, with ${portMark} in it and its quotes closed`,
        fix: `Write a line such as llama-server -m model.gguf --port ${portMark}.`,
        quiet: true,
      },
    ),
    models: field(
      z
        .array(
          field(z.string().max(maxModelIdLength).regex(printablePattern), {
            doc: "Id of the model at this server.",
            must: "a model id of 1 to 256 printable ASCII characters without spaces",
            fix: "Give an id such as qwen3-8b.",
          }),
        )
        .min(1),
      list(
        "Models that the command serves. An entry of `models` with the same id adds capabilities, context, prices and aliases.",
        "model ids, with one entry at least",
        "Write a list such as [qwen3-8b].",
      ),
    ),
    env: variables(
      "Environment variables of the command, besides basic ones such as PATH and HOME. It inherits no other variables of the server.",
    ).optional(),
    directory: field(z.string().min(1), {
      doc: "Working directory of the command. Default: that of the server.",
      must: "the path of a directory",
      fix: "Give a path; a relative one starts from the directory of the file.",
    }).optional(),
    path: field(z.string().regex(/^(\/[\w.~-]+)*$/), {
      doc: "Base path of the API. Paths such as `/chat/completions` are appended.",
      must: "a path without a slash at its end",
      fix: "Give a path such as /v1.",
    }).default("/v1"),
    api: said("API of the server, as `api` of an upstream.", oneOf(upstreamApis)).default(usualSpeech.api),
    apis: field(
      z.array(said("A conversation format.", oneOf(apiNames))).min(1),
      list(
        "Conversation formats that the server supports, as `apis` of an upstream. Default: detected automatically.",
        "chat, responses and messages, with one entry at least",
        "Write a list such as [chat, responses], or leave it out.",
      ),
    ).optional(),
    ready_path: field(z.string().regex(/^\/[!-~]*$/), {
      doc: "Path that answers 200 once the server is ready. Default: `/health`, or the list of models if the server has no `/health`.",
      must: "a path that begins with a slash",
      fix: "Give a path such as /health, or leave it out.",
    }).optional(),
    ready_seconds: said(
      "Maximum time from the start of the command until it is ready.",
      whole([1, 86_400], 600, "seconds"),
    ).default(600),
    memory: commandMemory.optional(),
    keep_seconds: field(z.union([z.int().min(1).max(31_536_000), z.null()]), {
      doc: "Idle time after which the command is stopped, or put to sleep. null: it runs until its memory is needed.",
      must: "a whole number of seconds from 1 to 31536000, or null",
      fix: "Give a number such as 600, or null.",
    }).default(600),
    preload: flag("Start the command with the server, not with its first request."),
    pinned: flag("Start the command with the server, and never stop it to make room for others."),
    group: field(z.string().regex(upstreamNamePattern), {
      doc: "Group of commands of which only one runs at a time.",
      must: "a name of lower-case letters, digits, dots, underscores or hyphens",
      fix: "Give the members the same name, such as large.",
    }).optional(),
    parallel: said(
      "Maximum number of concurrent requests. Further requests wait in the queue. Default: measured automatically.",
      orLeftOut(whole([1, 100_000], 8)),
    ).optional(),
    asleep_gpu: sizes(
      "For vLLM with `--enable-sleep-mode` and VLLM_SERVER_DEV_MODE=1: memory that it keeps on each GPU while it sleeps. It is put to sleep (level 1) instead of stopped if that frees enough memory. Meanwhile its weights are in RAM, so count them in `memory.ram`.",
    ).optional(),
    timeout_seconds: said(
      "Seconds to wait for the first byte of an answer.",
      whole([1, 86_400], 600, "seconds"),
    ).default(upstreamDefaults.timeoutSeconds),
    idle_seconds: said(
      "Seconds without data after which a started answer fails.",
      whole([1, 86_400], 900, "seconds"),
    ).default(upstreamDefaults.idleSeconds),
  }),
  entry("A command that serves models. It is started when a request needs it.", "name, command and models"),
);

export const commands = field(z.array(command), list("Commands that serve models.", "commands"));

const modelId = (doc: string, fix: string) =>
  field(z.string().min(1).max(maxModelIdLength).regex(printablePattern), { doc, must: "the id of a model", fix });

const file = field(
  z.strictObject({
    model: modelId(
      "Id of a pulled model, or of a file in `engine.models`.",
      "Give an id as `headrace list` shows it, such as qwen3-vl-4b-q4_k_m.",
    ),
    engine: said("Program that runs the model. It must be on the PATH.", oneOf(["llama-server"])),
    projector: field(z.string().min(1), {
      doc: "Projector file (mmproj) for images and audio. Default: none, the model reads text only.",
      must: "the path of a GGUF file",
      fix: "Give a path; a relative one starts from the directory of the file.",
    }).optional(),
    draft: modelId(
      "Id of a small draft model with the same vocabulary, for speculative decoding. Default: none.",
      "Give the id of another model of the built-in engine.",
    ).optional(),
    arguments: field(
      z.string().refine((text) => splitWords(text) !== undefined),
      {
        doc: "Further arguments for the program. They are not read by a shell.",
        must: "arguments in a line, with their quotes closed",
        fix: "Write a line such as --flash-attn on --cache-type-k q8_0.",
        quiet: true,
      },
    ).optional(),
  }),
  entry("A model file that another program than the built-in engine runs.", "model and engine"),
);

export const files = field(
  z.array(file),
  list("Model files that another program than the built-in engine runs.", "files"),
);

function namesPort(words: readonly string[]): boolean {
  return words.some((word) => word.includes(portMark));
}
