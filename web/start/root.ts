// The first part of the start: the library that draws.
import { createRoot, type Root } from "react-dom/client";

export function rootIn(element: HTMLElement): Root {
  return createRoot(element);
}
