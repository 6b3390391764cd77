"""Names of arguments that are YOLO's own or the recorder's: any other name is one that somebody gave."""

from typing import Final

# Of ultralytics 8.0 to 8.4.190 (a test holds them against the installed one); some are of old versions only.
_ARGUMENTS: Final = frozenset(
    (  # noqa: SIM905 - a word a line is a hundred lines
        """
        agnostic_nms amp angle augment augmentations auto_augment batch bgr box boxes cache cfg channels_last
        classes close_mosaic cls cls_pw cls_remap compile conf copy_paste copy_paste_mode cos_lr crop_fraction
        cutmix data degrees deterministic device dfl dgrad dis distill_model dlam dlog dnn dropout dynamic embed
        end2end epochs erasing exist_ok fl_gamma fliplr flipud format fraction freeze half hide_conf hide_labels
        hsv_h hsv_s hsv_v image_weights imgsz int8 iou keras kobj label_smoothing line_thickness line_width lr0 lrf
        mask_ratio max_det min_memory mixup mode model momentum mosaic multi_scale name nbs nms opset optimize
        optimizer overlap_mask patience persist perspective plots pose pretrained profile project quantize rect
        resume retina_masks rle save save_conf save_crop save_dir save_frames save_hybrid save_json save_period
        save_txt scale seed session shear show show_boxes show_conf show_labels simplify single_cls source split
        stream stream_buffer sync_bn task time tracker translate upload_dataset v5loader val verbose vid_stride
        visualize warmup_bias_lr warmup_epochs warmup_momentum weight_decay workers workspace
        """
    ).split()
)
# What our callbacks report of a training, a validation, a prediction and an export.
_SETTINGS: Final = frozenset(
    (  # noqa: SIM905 - see above
        """
        accumulate batch_tensors batch_tensors_key batch_tensors_mib batches compute_capability cuda data_folder
        data_mib distinct_images gflops gpu_uuid gpus_hidden image_boxes image_px images label_classes local_rank
        memory_fraction memory_retries nccl_disabled node_rank nodes npy_mib omp_num_threads parameters prefetch
        providers python ranks restarts resumed run_id scaled_down slow_modes slow_modes_now start_epoch start_method
        synced_norms tf32 thread_binding torch torch_threads ultralytics val_distinct_images val_images world_size
        """
    ).split()
)
YOLO_ARGUMENTS: Final = _ARGUMENTS | _SETTINGS
