// A word in a frame, such as a state: plain elements, as long lists have one a row.
import type { ReactNode } from "react";

export function Tag({ icon, children }: { icon?: ReactNode; children: string }) {
  return (
    <span className="tag">
      {icon}
      {children}
    </span>
  );
}
