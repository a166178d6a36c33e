// A word in a frame, such as a state: plain elements, because long lists have one per row.
import type { ReactNode } from "react";

export function Tag({ icon, children }: { icon?: ReactNode; children: string }) {
  return (
    <span className="tag">
      {icon}
      {children}
    </span>
  );
}
