// How far two shares are apart: "1.4 %" of a share could be either of two things.
import { number } from "./numbers.js";

export const points = apart => `${number(100 * Math.abs(apart), 2)} percentage points`;
