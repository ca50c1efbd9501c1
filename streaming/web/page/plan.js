// The migration plan is written by the monitor; here is only whether the monitor is still there.
import { follow } from "./live.js";

follow(null, async () => {}, async () => {});
