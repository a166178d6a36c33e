// A tooltip, also announced as its element's description.
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
    // Mantine measures the target only after the first render.
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

/** Returns the current text of the hint; null once its element is gone. */
function useText(of: HTMLElement): string | null {
  const subscribe = useCallback(
    (listener: () => void) => {
      const changes = new MutationObserver(listener);
      changes.observe(of, { attributeFilter: ["data-hint"] });
      // The observer also fires when the element is removed.
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
