// Schemas for sound and images (OpenAI API reference: "Create speech", "Create transcription", "Create image" and
// related pages).
import { z } from "zod";
import { modelId } from "../parts.ts";

const user = z.string().max(1024).nullish().describe("Your own id of the end user. Passed on to the model server.");
const prompt = z.string().min(1).max(1_000_000);

/** A file in a form, described without the bytes of the file. */
export const formFile = z.looseObject({ bytes: z.int() }).describe("A file.").meta({ id: "FormFile" });

/** The body of `POST /audio/speech`. */
export const speechRequest = z
  .looseObject({
    model: modelId,
    input: prompt.describe("Text to speak."),
    voice: z
      .union([z.string().max(1024), z.looseObject({})])
      .optional()
      .describe("A voice of the model server."),
    instructions: z
      .string()
      .max(1_000_000)
      .nullish()
      .describe("Instructions for the way of speaking, if the model supports it."),
    response_format: z.string().max(64).nullish().describe("`mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`."),
    speed: z.number().min(0).max(100).nullish(),
    stream_format: z
      .enum(["audio", "sse"])
      .nullish()
      .describe(
        "`sse`: a stream of events that ends with usage. Default: the audio itself, streamed as it is generated.",
      ),
  })
  .meta({ id: "SpeechRequest" });

/** An event of streamed speech. */
export const speechEvent = z
  .looseObject({
    type: z.string().describe("`speech.audio.delta`, and `speech.audio.done` with `usage` at the end."),
    audio: z.string().optional().describe("Base64."),
  })
  .meta({ id: "SpeechEvent" });

const soundRequest = {
  file: formFile,
  model: modelId,
  prompt: z.string().max(1_000_000).nullish().describe("Preceding text, or words that are likely to occur."),
  temperature: z.number().min(0).max(100).nullish(),
};

/** The body of `POST /audio/transcriptions`. */
export const transcriptionRequest = z
  .looseObject({
    ...soundRequest,
    language: z.string().max(64).nullish().describe("ISO 639-1."),
    response_format: z
      .string()
      .max(64)
      .nullish()
      .describe("`json`, `text`, `srt`, `verbose_json`, `vtt` or `diarized_json`."),
    stream: z.boolean().nullish().describe("True to stream the transcript."),
    timestamp_granularities: z.array(z.string().max(64)).max(16).nullish(),
    include: z.array(z.string().max(64)).max(16).nullish(),
    known_speaker_names: z.array(z.string().max(1_000)).max(16).nullish(),
    known_speaker_references: z
      .array(z.string())
      .max(16)
      .nullish()
      .describe("The voices of these speakers, as data URIs."),
  })
  .meta({ id: "TranscriptionRequest" });

/** The body of `POST /audio/translations`. */
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
      .describe("Usage of type `tokens`, or of type `duration` with `seconds`, depending on the model."),
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
  n: z.int().min(1).max(100).nullish().describe("Number of images. Default: 1."),
  size: z.string().max(64).nullish(),
  response_format: z.string().max(64).nullish().describe("`url` or `b64_json`, if the model supports both."),
  user,
};
const streamed = {
  stream: z.boolean().nullish().describe("True to stream the images as they are generated."),
  partial_images: z.int().min(0).max(100).nullish().describe("Number of partial images."),
};

/** The body of `POST /images/generations`. */
export const imageRequestBody = z
  .looseObject({ ...imageRequest, ...streamed, prompt: prompt.describe("Description of the image.") })
  .meta({ id: "ImageRequest" });

const files = z.union([formFile, z.array(formFile).min(1).max(64)]);

/** The body of `POST /images/edits`, which is a form or JSON. */
export const imageEditRequest = z
  .looseObject({
    ...imageRequest,
    ...streamed,
    prompt: prompt.describe("Description of the change."),
    image: files.optional().describe("One or several images. In JSON the member is `images`."),
    mask: formFile.optional().describe("Mask of the area that may change."),
    images: z
      .array(z.looseObject({}))
      .max(64)
      .optional()
      .describe("For JSON requests: objects with `image_url` or `file_id`."),
  })
  .meta({ id: "ImageEditRequest" });

/** The body of `POST /images/variations`. */
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
