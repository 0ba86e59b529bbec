// Pictures that are sent along: read, and made smaller when they are larger than models look at
// anyway.

const MOST_PIXELS = 1568; // of the longer side
const MOST_BYTES = 1_000_000;
const LARGEST_FILE = 30_000_000;
const QUALITY = 0.85;

/** How many pictures a message may have. */
export const MOST_IMAGES = 8;

export interface Size {
    width: number;
    height: number;
}

/** As large as allowed, with the same shape. */
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
    context.fillStyle = "#fff"; // JPEG knows nothing of what is transparent
    context.fillRect(0, 0, size.width, size.height);
    context.drawImage(bitmap, 0, 0, size.width, size.height);
    return canvas.toDataURL("image/jpeg", QUALITY);
}

const SENT_AS_IS = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

/** A picture as a data: address. Throws a sentence for people. */
export async function readImage(file: File): Promise<string> {
    if (!file.type.startsWith("image/")) throw new Error(`${file.name} is not an image.`);
    if (file.size > LARGEST_FILE) throw new Error(`${file.name} is larger than 30 MB.`);
    let bitmap: ImageBitmap;
    try {
        bitmap = await createImageBitmap(file);
    } catch {
        throw new Error(`${file.name} can't be read as an image.`);
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
