// SPDX-License-Identifier: Apache-2.0
// Profiles a program that embeds IREE: what a device does between begin and end becomes a session
// of the log directory.
//
// The bundle is written to LOGDIR/incoming/NAME.part, which no reader takes for a profile, and
// renamed to LOGDIR/NAME.ireeprof when it is complete.  A program that dies leaves the part behind:
// `xplanectl iree summary` reads that, too, as far as it goes.
//
// Compile with IREE's headers (runtime/src) and link with iree_hal_hal, iree_hal_utils_profile_file
// and a driver.  Written for IREE 3.12 and later.
#include <stdio.h>
#include <sys/stat.h>

#include "iree/base/api.h"
#include "iree/hal/api.h"
#include "iree/hal/utils/profile_file.h"
#include "iree/io/file_handle.h"

typedef struct capture_t {
    iree_hal_device_t *device;
    char part[1024], name[1024];
} capture_t;

// Begins a capture of `device`, to which nothing may be submitted meanwhile.  `logdir` exists;
// `name` becomes the session's name.
static iree_status_t capture_begin(capture_t *capture, iree_hal_device_t *device,
                                   const char *logdir, const char *name) {
    const iree_allocator_t host = iree_allocator_system();
    iree_io_file_handle_t *file = NULL;
    iree_hal_profile_sink_t *sink = NULL;
    capture->device = device;
    (void)snprintf(capture->part, sizeof capture->part, "%s/incoming", logdir);
    (void)mkdir(capture->part, 0777); // an existing one is fine; otherwise opening the file fails
    const int a =
        snprintf(capture->part, sizeof capture->part, "%s/incoming/%s.part", logdir, name);
    const int b = snprintf(capture->name, sizeof capture->name, "%s/%s.ireeprof", logdir, name);
    if (a >= (int)sizeof capture->part || b >= (int)sizeof capture->name)
        return iree_make_status(IREE_STATUS_INVALID_ARGUMENT,
                                "the name of the session is too long");

    iree_status_t status = iree_io_file_handle_create(
        IREE_IO_FILE_MODE_WRITE | IREE_IO_FILE_MODE_SEQUENTIAL_SCAN | IREE_IO_FILE_MODE_SHARE_READ,
        iree_make_cstring_view(capture->part), /*initial_size=*/0, host, &file);
    if (iree_status_is_ok(status)) status = iree_hal_profile_file_sink_create(file, host, &sink);
    iree_io_file_handle_release(file); // the sink has it

    if (iree_status_is_ok(status)) {
        // The data of CPU drivers; Vulkan takes DISPATCH_EVENTS and DEVICE_QUEUE_EVENTS in place of
        // HOST_EXECUTION_EVENTS. A driver refuses data that it cannot record.
        const iree_hal_device_profiling_options_t options = {
            .data_families = IREE_HAL_DEVICE_PROFILING_DATA_QUEUE_EVENTS |
                             IREE_HAL_DEVICE_PROFILING_DATA_HOST_EXECUTION_EVENTS |
                             IREE_HAL_DEVICE_PROFILING_DATA_EXECUTABLE_METADATA |
                             IREE_HAL_DEVICE_PROFILING_DATA_MEMORY_EVENTS,
            .sink = sink,
            .capture_filter = iree_hal_profile_capture_filter_default(),
        };
        status = iree_hal_device_profiling_begin(device, &options);
    }
    iree_hal_profile_sink_release(sink); // the device has it
    if (!iree_status_is_ok(status)) (void)remove(capture->part);
    return status;
}

// Passes the data recorded so far to the file: for long captures, whose rings would overflow. Work
// may be under way.
static iree_status_t capture_flush(capture_t *capture) {
    return iree_hal_device_profiling_flush(capture->device);
}

// Ends the capture, when all work that it is to have is done; the session is there then.
static iree_status_t capture_end(capture_t *capture) {
    iree_status_t status = iree_hal_device_profiling_end(capture->device);
    if (iree_status_is_ok(status) && rename(capture->part, capture->name) != 0)
        status = iree_make_status(IREE_STATUS_UNKNOWN, "cannot rename %s", capture->part);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        (void)fprintf(stderr, "Usage: %s DEVICE_URI LOGDIR NAME\n", argv[0]);
        return 2;
    }
    const iree_allocator_t host = iree_allocator_system();
    iree_hal_driver_registry_t *registry = NULL;
    iree_hal_device_t *device = NULL;
    iree_hal_device_create_params_t params = iree_hal_device_create_params_default();
    capture_t capture = {0};

    // Register the drivers of your program here: iree_hal_local_sync_driver_module_register, ...
    iree_status_t status = iree_hal_driver_registry_allocate(host, &registry);
    if (iree_status_is_ok(status))
        status = iree_hal_create_device(registry, iree_make_cstring_view(argv[1]), &params, host,
                                        &device);
    if (iree_status_is_ok(status)) status = capture_begin(&capture, device, argv[2], argv[3]);
    if (iree_status_is_ok(status)) {
        // Your work: invoke functions of the module, and wait for their signals.
        status = capture_flush(&capture);
        status = iree_status_join(status, capture_end(&capture));
    }
    if (!iree_status_is_ok(status)) iree_status_fprint(stderr, status);
    const int code = iree_status_is_ok(status) ? 0 : 1;
    iree_status_free(status);
    iree_hal_device_release(device);
    iree_hal_driver_registry_free(registry);
    return code;
}
