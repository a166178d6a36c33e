// Explains which requests limits refused and why, with links to a remedy.
import type { Overview } from "../../api/types.ts";
import { PlainLink } from "../../parts/page/links.tsx";
import { Card } from "../../parts/page/section.tsx";
import { RefusedFor } from "../../parts/usage/refused-for.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { Note } from "../../parts/words/note.tsx";

type Line = Overview["throttled"][number];

interface ThrottledProps {
  throttled: readonly Line[];
  /** Returns the name of a credential by its id. */
  nameOf(id: string): string;
}

const maxLines = 4;

export function Throttled({ throttled, nameOf }: ThrottledProps) {
  return (
    <Card
      title="Rate-limited requests"
      more={throttled.length > 0 && <PlainLink href="/settings/limits">Limits</PlainLink>}
    >
      {throttled.length === 0 ? (
        <Note>No rate-limited requests in this time.</Note>
      ) : (
        <div className="meanings">
          {throttled.slice(0, maxLines).map((line) => (
            <div key={line.reason}>
              <RefusedFor reason={line.reason} requests={line.requests}>
                Mostly {said(line, nameOf)}; last one <Ago seconds={line.last_at} />.
              </RefusedFor>
            </div>
          ))}
          {throttled.length > maxLines && (
            <PlainLink href="/settings/limits">{throttled.length - maxLines} more reasons</PlainLink>
          )}
        </div>
      )}
    </Card>
  );
}

/** Names the key and the model with the most refused requests, where the server could single one out. */
function said({ key, model }: Line, nameOf: ThrottledProps["nameOf"]): string {
  const parts = [key === null ? undefined : nameOf(key), model === null ? undefined : `with ${model}`];
  return parts.filter((part) => part !== undefined).join(" ") || "several keys and models";
}
