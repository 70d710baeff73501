/**
 * A function that does its work with the next frame, once, however often it is called:
 * a burst of events costs one drawing. Hidden windows get no frames, so a timer stands in.
 */
export function oncePerFrame(work: () => void): () => void {
  let scheduled = false
  return () => {
    if (scheduled) return
    scheduled = true
    const run = () => {
      if (!scheduled) return
      scheduled = false
      work()
    }
    requestAnimationFrame(run)
    setTimeout(run, 50)
  }
}
