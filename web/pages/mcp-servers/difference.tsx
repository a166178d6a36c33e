// The approved and the current text side by side: removed and added lines, and the changed words in them.
import { VisuallyHidden } from "@mantine/core";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { counted } from "../../parts/words/figures.ts";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { differences, type Line } from "./differences.ts";

interface DifferenceProps {
  label: string;
  before: string;
  after: string;
  /** True if the texts are JSON. */
  isCode: boolean;
}

/** Number of unchanged lines that are shown around a change. */
const around = 2;

export function Difference({ label, before, after, isCode }: DifferenceProps) {
  return (
    <ScrollRegion className="difference" label={`What changed: ${label}`} data-code={isCode || undefined}>
      {foldedOf(differences(before, after)).map((shown, at) =>
        typeof shown === "number" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same texts have the same lines
          <div key={at} className="difference-fold">
            {counted(shown, "line")} as approved
          </div>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same texts have the same lines
          <DifferenceLine key={at} line={shown} />
        ),
      )}
    </ScrollRegion>
  );
}

const looks = {
  same: { Element: "div", sign: " ", said: "" },
  was: { Element: "del", sign: "−", said: "Approved: " },
  is: { Element: "ins", sign: "+", said: "Now: " },
} as const;

function DifferenceLine({ line: { kind, pieces } }: { line: Line }) {
  const { Element, sign, said } = looks[kind];
  return (
    <Element className="difference-line" data-kind={kind}>
      <span aria-hidden className="difference-sign">
        {sign}
      </span>
      <span dir="auto">
        {said !== "" && <VisuallyHidden>{said}</VisuallyHidden>}
        {pieces.map(({ text, isChanged }, at) =>
          isChanged ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: the same texts have the same pieces
            <mark key={at}>
              <VisibleText>{text}</VisibleText>
            </mark>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: the same texts have the same pieces
            <VisibleText key={at}>{text}</VisibleText>
          ),
        )}
      </span>
    </Element>
  );
}

/** Replaces unchanged lines that are not near a change by their number. */
function foldedOf(lines: readonly Line[]): (Line | number)[] {
  const isNear = (at: number) =>
    lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== "same");
  const shown: (Line | number)[] = [];
  for (const [at, line] of lines.entries()) {
    const last = shown.at(-1);
    if (isNear(at)) shown.push(line);
    else if (typeof last === "number") shown[shown.length - 1] = last + 1;
    else shown.push(1);
  }
  return shown;
}
