// One hint, drawn beside what it is about, and told as its description.
import { Tooltip } from "@mantine/core";
import { useCallback, useEffect, useId, useState, useSyncExternalStore } from "react";

interface HintProps {
  /** The element that has the attribute `data-hint`. */
  of: HTMLElement;
}

export function Hint({ of }: HintProps) {
  const id = useId();
  const text = useText(of);
  const [placed, setPlaced] = useState<HTMLElement>();
  useEffect(() => {
    // The library learns of its place only once it was drawn.
    setPlaced(of);
    of.setAttribute("aria-describedby", id);
    return () => of.removeAttribute("aria-describedby");
  }, [of, id]);
  return (
    <Tooltip
      target={of}
      opened={placed === of && text !== null}
      label={<span id={id}>{text}</span>}
      multiline
      maw={300}
      transitionProps={{ duration: 0 }}
    />
  );
}

/** The text of the hint at this moment; null once what it is about is not there any more. */
function useText(of: HTMLElement): string | null {
  const subscribe = useCallback(
    (listener: () => void) => {
      const changes = new MutationObserver(listener);
      changes.observe(of, { attributeFilter: ["data-hint"] });
      // Told also as the element is removed.
      const sizes = new ResizeObserver(listener);
      sizes.observe(of);
      return () => {
        changes.disconnect();
        sizes.disconnect();
      };
    },
    [of],
  );
  return useSyncExternalStore(subscribe, () => (of.isConnected ? of.getAttribute("data-hint") : null));
}
