// The button and the shortcut that open the search. The search itself is loaded when it is first opened.
import { Button } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { useEffect, useState } from "react";
import { useLater } from "../parts/page/later.ts";
import { sections } from "./navigation.ts";

const load = async () => (await import("./find.tsx")).Find;
const isApple = /Mac|iP(hone|ad)/.test(navigator.userAgent);

export function FindButton() {
  const [isWanted, setWanted] = useState(false);
  const [opened, setOpened] = useState(false);
  const { part: Find } = useLater(isWanted ? load : undefined);
  const open = () => {
    setWanted(true);
    setOpened(true);
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey)
        return;
      // A dialog with a form stays: the search would cover it, and lead away from it.
      if (document.querySelector("[role=dialog]")) return;
      event.preventDefault();
      setWanted(true);
      setOpened(true);
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <Button variant="default" size="xs" leftSection={<SearchIcon />} onClick={open} visibleFrom="xs">
        Find <kbd className="shortcut">{isApple ? "⌘K" : "Ctrl+K"}</kbd>
      </Button>
      {Find && <Find sections={sections} opened={opened} close={() => setOpened(false)} />}
    </>
  );
}
