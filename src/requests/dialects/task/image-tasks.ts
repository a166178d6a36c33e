// The tasks for images: a model makes an image from a text, or from other images.
import {
  imageEditRequest,
  imageEvent,
  imageRequestBody,
  images as imagesAnswer,
  imageVariationRequest,
} from "../../../wire/tasks/media.ts";
import { countOf } from "../reported-parts.ts";
import { usageOf } from "../response/reply-reader.ts";
import { type Json, jsonTask, type Task, type TaskEvents } from "./task.ts";

/** Size in bytes of a large lossless image, encoded as base64. */
const bytesOfImage = 24 * 1024 * 1024;

const drawing = {
  ...jsonTask,
  capability: "images",
  answer: imagesAnswer,
  promptMember: "prompt",
  shownMembers: ["prompt"],
  repeated: [],
  readings: () => 1,
  answerTokens: () => undefined,
  units: ({ n }) => ({ images: countOf(n) ?? 1 }),
  answerMembers: { data: "items" },
  itemBytes: bytesOfImage,
  usage({ usage, data }) {
    const reported = usageOf(usage, {});
    const images = Array.isArray(data) ? data.length : undefined;
    return images === undefined ? reported : { ...reported, details: { ...reported?.details, images } };
  },
} as const satisfies Partial<Task>;

function eventsOf(kind: "image_generation" | "image_edit"): TaskEvents {
  const [last, part] = [`${kind}.completed`, `${kind}.partial_image`];
  return {
    shape: imageEvent,
    isAsked: ({ stream }) => stream === true,
    last,
    delivered: { [last]: "b64_json", [part]: "b64_json" },
    // If only a part of an image arrived, it still counts as an image.
    units: (_, complete, begun) => ({ images: complete + (begun ? 1 : 0) }),
    ofWhole({ data, usage, created, ...others }) {
      const items = Array.isArray(data) ? (data as Json[]) : [];
      // The usage that a server reports applies to all images of the answer together.
      return items.map((item, i) => ({
        ...{ type: last, created_at: created, ...others, ...item },
        ...(i === items.length - 1 && usage !== undefined ? { usage } : {}),
      }));
    },
  };
}

export const image: Task = {
  ...drawing,
  operation: "image",
  endpoint: "images",
  paths: ["/v1/images/generations"],
  doc: {
    operationId: "createImage",
    summary: "Make an image",
    description: "It is counted in images, and in tokens where the server tells them.",
    example: { model: "painter", prompt: "A water mill in winter", n: 1 },
    answerDescription: "The images; events with `stream`.",
  },
  schema: imageRequestBody,
  events: eventsOf("image_generation"),
};

export const imageEdit: Task = {
  ...drawing,
  operation: "image_edit",
  endpoint: "image edits",
  paths: ["/v1/images/edits"],
  doc: {
    operationId: "createImageEdit",
    summary: "Edit an image",
    description: "A form with one `image` or several, or JSON with `images`. It is counted as images that are made.",
    answerDescription: "The images; events with `stream`.",
  },
  schema: imageEditRequest,
  form: { files: ["image", "mask", "markup"], orJson: true },
  events: eventsOf("image_edit"),
};

export const imageVariation: Task = {
  ...drawing,
  operation: "image_variation",
  endpoint: "image variations",
  paths: ["/v1/images/variations"],
  doc: {
    operationId: "createImageVariation",
    summary: "Vary an image",
    description: "A form, counted as images that are made.",
    answerDescription: "The images.",
  },
  schema: imageVariationRequest,
  form: { files: ["image"], orJson: false },
};
