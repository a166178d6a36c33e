// The first part of the startup: React.
import { createRoot, type Root } from "react-dom/client";

export function rootIn(element: HTMLElement): Root {
  return createRoot(element);
}
