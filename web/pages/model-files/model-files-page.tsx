// The page Model files: models on this server's disk and in its memory, and what fits.
import { Stack } from "@mantine/core";
import { useSearchParams } from "wouter";
import { useRead } from "../../api/queries.ts";
import type { PulledModelList } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { bytes, counted } from "../../parts/words/figures.ts";
import { FileList } from "./file-list.tsx";
import { filesPath } from "./file-words.ts";
import { MemoryPicture } from "./memory-picture.tsx";
import { PullModel } from "./pull-model.tsx";
import { Pulls } from "./pulls.tsx";

const everyMs = 3_000;

export const ModelFilesPage = operatorsOnly("Model files", ModelFiles);

function ModelFiles() {
  const [search, setSearch] = useSearchParams();
  const read = useRead<PulledModelList>(filesPath, {}, { everyMs });
  const close = () => setSearch({});
  const pull = <AddButton onClick={() => setSearch({ new: "" })}>Pull a model</AddButton>;
  return (
    <Page
      title="Model files"
      about="GGUF files on this server's disk, run by its built-in engine. Each replica has its own files."
      actions={pull}
    >
      {read.error && !read.data && <Failure error={read.error} retry={read.refetch} />}
      {!read.data && !read.error && <Waiting heights={[140, 84, 84]} />}
      {read.data && <Found list={read.data} pull={pull} />}
      <FormDialog opened={search.has("new")} title="Pull a model" close={close}>
        <PullModel close={close} />
      </FormDialog>
    </Page>
  );
}

function Found({ list: { data, pulls, memory }, pull }: { list: PulledModelList; pull: React.ReactNode }) {
  const sum = data.reduce((total, model) => total + model.bytes, 0);
  return (
    <Stack gap="lg">
      <Section
        title="Memory"
        about="Memory of this server that models use. Idle models are unloaded when another model needs memory."
      >
        <MemoryPicture memory={memory} />
      </Section>
      {pulls.length > 0 && <Pulls pulls={pulls} />}
      {data.length > 0 ? (
        <Section title="Files" about={`${counted(data.length, "model")}, ${bytes(sum)} on disk.`}>
          <FileList files={data} memory={memory} />
        </Section>
      ) : (
        pulls.length === 0 && (
          <Empty title="No pulled models yet" action={pull}>
            Pull a model from the Hugging Face Hub, such as hf:Qwen/Qwen3-0.6B-GGUF. The model is served as soon as its
            download is complete.
          </Empty>
        )
      )}
    </Stack>
  );
}
