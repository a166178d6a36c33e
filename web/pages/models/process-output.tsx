// The live output of a model process.
import { useRead } from "../../api/queries.ts";
import type { ModelProcessOutput } from "../../api/types.ts";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { SmallNote } from "../../parts/words/note.tsx";

const everyMs = 2_000;
/** Maximum number of lines that the page shows; the command line can show older lines. */
const maxLines = 200;

export function ProcessOutput({ name, path }: { name: string; path: string }) {
  const { data } = useRead<ModelProcessOutput>(path, {}, { everyMs });
  const lines = (data?.data ?? []).slice(-maxLines);
  if (lines.length === 0) return <SmallNote>No output yet.</SmallNote>;
  return (
    <ScrollRegion label={`Output of ${name}`} className="process-output">
      <pre>{lines.map(({ text }) => text).join("\n")}</pre>
    </ScrollRegion>
  );
}
