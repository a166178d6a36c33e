// A page whose file is loaded when it is first opened.
import { Loader } from "@mantine/core";
import type { ComponentType } from "react";
import { type Load, useLater } from "../parts/page/later.ts";

export type LoadPage = Load<ComponentType>;

/** If the file cannot be loaded, the page shows an error. */
export function LaterPage({ load }: { load: LoadPage }) {
  const { part: Page, failure } = useLater(load);
  if (failure) throw failure.error;
  return Page ? <Page /> : <Loader className="late" aria-label="Loading the page" />;
}
