// Sound and images on the wire (OpenAI API reference: "Create speech", "Create transcription", "Create image", and what stands beside them).
import { z } from "zod";
import { modelId } from "../parts.ts";

const user = z.string().max(1024).nullish().describe("Your own id of the end user; passed on.");
const prompt = z.string().min(1).max(1_000_000);

/** A file of a form, as what is told of it in place of its bytes. */
export const formFile = z.looseObject({ bytes: z.int() }).describe("A file.").meta({ id: "FormFile" });

/** POST /audio/speech. */
export const speechRequest = z
  .looseObject({
    model: modelId,
    input: prompt.describe("The text that is to be spoken."),
    voice: z
      .union([z.string().max(1024), z.looseObject({})])
      .optional()
      .describe("A voice of the model server."),
    instructions: z.string().max(1_000_000).nullish().describe("How it is to be spoken, where the model knows that."),
    response_format: z.string().max(64).nullish().describe("`mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`."),
    speed: z.number().min(0).max(100).nullish(),
    stream_format: z
      .enum(["audio", "sse"])
      .nullish()
      .describe("`sse`: a stream of events, with usage at its end. Default: the sound itself, as it is made."),
  })
  .meta({ id: "SpeechRequest" });

/** The events of a stream of speech. */
export const speechEvent = z
  .looseObject({
    type: z.string().describe("`speech.audio.delta`, and `speech.audio.done` with `usage` at the end."),
    audio: z.string().optional().describe("Base64."),
  })
  .meta({ id: "SpeechEvent" });

const soundRequest = {
  file: formFile,
  model: modelId,
  prompt: z.string().max(1_000_000).nullish().describe("What came before, or words that are likely to come."),
  temperature: z.number().min(0).max(100).nullish(),
};

/** POST /audio/transcriptions. */
export const transcriptionRequest = z
  .looseObject({
    ...soundRequest,
    language: z.string().max(64).nullish().describe("ISO 639-1."),
    response_format: z
      .string()
      .max(64)
      .nullish()
      .describe("`json`, `text`, `srt`, `verbose_json`, `vtt` or `diarized_json`."),
    stream: z.boolean().nullish().describe("Whether the text is to come as it is heard."),
    timestamp_granularities: z.array(z.string().max(64)).max(16).nullish(),
    include: z.array(z.string().max(64)).max(16).nullish(),
  })
  .meta({ id: "TranscriptionRequest" });

/** POST /audio/translations. */
export const translationRequest = z
  .looseObject({
    ...soundRequest,
    response_format: z.string().max(64).nullish().describe("`json`, `text`, `srt`, `verbose_json` or `vtt`."),
  })
  .meta({ id: "TranslationRequest" });

export const transcription = z
  .looseObject({
    text: z.string(),
    duration: z.number().optional().describe("Seconds; with `verbose_json`."),
    usage: z
      .looseObject({ type: z.string() })
      .optional()
      .describe("Its type is `tokens`, or `duration` with `seconds`, by how the model is counted."),
  })
  .meta({ id: "Transcription" });

export const transcriptionEvent = z
  .looseObject({
    type: z.string().describe("`transcript.text.delta`, and `transcript.text.done` with `usage` at the end."),
    delta: z.string().optional(),
    text: z.string().optional(),
  })
  .meta({ id: "TranscriptionEvent" });

const imageRequest = {
  model: modelId,
  n: z.int().min(1).max(100).nullish().describe("How many images are wanted. Default: 1."),
  size: z.string().max(64).nullish(),
  response_format: z.string().max(64).nullish().describe("`url` or `b64_json`, where the model knows both."),
  user,
};
const streamed = {
  stream: z.boolean().nullish().describe("Whether images are to come as they are made."),
  partial_images: z.int().min(0).max(100).nullish().describe("How many images on the way there are wanted."),
};

/** POST /images/generations. */
export const imageRequestBody = z
  .looseObject({ ...imageRequest, ...streamed, prompt: prompt.describe("What is to be seen.") })
  .meta({ id: "ImageRequest" });

const files = z.union([formFile, z.array(formFile).min(1).max(64)]);

/** POST /images/edits: a form, or JSON. */
export const imageEditRequest = z
  .looseObject({
    ...imageRequest,
    ...streamed,
    prompt: prompt.describe("What is to be changed."),
    image: files.optional().describe("One image or several; in JSON these are `images`."),
    mask: formFile.optional().describe("Where the image may be changed."),
    images: z.array(z.looseObject({})).max(64).optional().describe("In JSON: objects with `image_url` or `file_id`."),
  })
  .meta({ id: "ImageEditRequest" });

/** POST /images/variations. */
export const imageVariationRequest = z
  .looseObject({ ...imageRequest, image: formFile })
  .meta({ id: "ImageVariationRequest" });

export const images = z
  .looseObject({
    created: z.int().optional().describe("Unix seconds."),
    data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional() })),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }).optional(),
  })
  .meta({ id: "Images" });

export const imageEvent = z
  .looseObject({
    type: z
      .string()
      .describe("`image_generation.partial_image` and `image_generation.completed`, or the same of `image_edit`."),
    b64_json: z.string().optional(),
  })
  .meta({ id: "ImageEvent" });
