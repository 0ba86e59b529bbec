// Attached images: read, and scaled down to the size that models use.

const MOST_PIXELS = 1568; // of the longer side
const MOST_BYTES = 1_000_000;
const LARGEST_FILE = 30_000_000;
const QUALITY = 0.85;

/** The maximum number of images in a message. */
export const MOST_IMAGES = 8;

export interface Size {
    width: number;
    height: number;
}

/** The largest allowed size with the same aspect ratio. */
export function fitted({ width, height }: Size, most = MOST_PIXELS): Size {
    const scale = Math.min(1, most / Math.max(width, height, 1));
    return {
        width: Math.max(1, Math.round(width * scale)),
        height: Math.max(1, Math.round(height * scale)),
    };
}

function dataUrl(file: Blob): Promise<string> {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(String(reader.result));
        reader.onerror = () => reject(reader.error ?? new Error("unreadable"));
        reader.readAsDataURL(file);
    });
}

function draw(bitmap: ImageBitmap, size: Size): string {
    const canvas = document.createElement("canvas");
    canvas.width = size.width;
    canvas.height = size.height;
    const context = canvas.getContext("2d");
    if (!context) throw new Error("no canvas");
    context.fillStyle = "#fff"; // JPEG has no transparency
    context.fillRect(0, 0, size.width, size.height);
    context.drawImage(bitmap, 0, 0, size.width, size.height);
    return canvas.toDataURL("image/jpeg", QUALITY);
}

const SENT_AS_IS = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

/** An image as a data: URL. Throws an error with a readable message. */
export async function readImage(file: File): Promise<string> {
    if (!file.type.startsWith("image/")) throw new Error(`${file.name} is not an image.`);
    if (file.size > LARGEST_FILE) throw new Error(`${file.name} is larger than 30 MB.`);
    let bitmap: ImageBitmap;
    try {
        bitmap = await createImageBitmap(file);
    } catch {
        throw new Error(`${file.name} is not a readable image.`);
    }
    try {
        const size = fitted(bitmap);
        const isSmall =
            size.width === bitmap.width && size.height === bitmap.height && file.size <= MOST_BYTES;
        return isSmall && SENT_AS_IS.has(file.type) ? await dataUrl(file) : draw(bitmap, size);
    } finally {
        bitmap.close();
    }
}
