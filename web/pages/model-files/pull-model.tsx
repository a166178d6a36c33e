// Pulls a model: looks the name up first and shows size and fit before the download.
import { Alert, TextInput } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { PullOffer, PullRequest } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { bytes } from "../../parts/words/figures.ts";
import { filesPath, fitWords } from "./file-words.ts";

export function PullModel({ close }: { close(): void }) {
  const [source, setSource] = useState("");
  const [name, setName] = useState("");
  const asked: PullRequest = { source: source.trim(), name: name.trim() === "" ? null : name.trim() };
  const preview = useChange(
    (body: PullRequest) => call<PullOffer>("POST", filesPath, { body: { ...body, dry_run: true } }),
    {},
  );
  const pull = useNotifiedChange((body: PullRequest) => call<PullOffer>("POST", filesPath, { body }), {
    stale: [filesPath],
    leave: close,
    said: ({ id }) => `${id} is being pulled.`,
  });
  // The result of a preview for other input than the current one is not shown.
  const offer = JSON.stringify(preview.variables) === JSON.stringify(asked) ? preview.data : undefined;
  const hasRoom = offer === undefined || offer.missing_bytes <= offer.room_bytes;
  const error = pull.error ?? preview.error;
  return (
    <Form
      sending={{ isPending: preview.isPending || pull.isPending, error }}
      fields={["source", "name"]}
      action={offer ? `Pull ${bytes(offer.missing_bytes)}` : "Find model"}
      disabled={asked.source === "" || !hasRoom}
      submit={() => {
        if (offer) return pull.mutate(asked);
        pull.reset();
        preview.mutate(asked);
      }}
      cancel={close}
    >
      <TextInput
        label="Model"
        description="A Hugging Face repository. After a second colon you can add a quantization, a file name or a path."
        placeholder="hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"
        value={source}
        onChange={(event) => setSource(event.currentTarget.value)}
        error={problemOf(error, "source")}
        autoComplete="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <TextInput
        label="Id"
        description="The model name that clients send. Leave empty to use the file name in lower case."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(error, "name")}
        autoComplete="off"
        spellCheck={false}
      />
      {offer && <Offer offer={offer} />}
    </Form>
  );
}

function Offer({ offer }: { offer: PullOffer }) {
  const { id, file, quantization, bytes: size, missing_bytes: missing, room_bytes: room, fit } = offer;
  const fits = fit !== "never" && missing <= room;
  return (
    <Alert
      icon={fits ? <CheckCircleIcon /> : <AlertIcon />}
      color={fits ? "gray" : "red"}
      title={missing > room ? "Not enough disk space" : fitWords[fit][1]}
      role="status"
    >
      {file} will be served as {id}. The file has {bytes(size)}
      {quantization === null ? "" : `, stored as ${quantization}`}; {bytes(missing)} must be downloaded, and the disk
      has {bytes(room)} free. The model needs at least {bytes(offer.least_memory_bytes)} of memory, plus memory for its
      context.
    </Alert>
  );
}
